"""Settings of methods: what the papers have, what the run says, and names that settings had."""

import re

import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from tests.agents.msgrpo import test_plugins

DISCOUNTS = {
    "hgpo": 0.95,
    "g2po": 0.95,
    "gagpo": 0.95,
    "hcapo": 0.95,
    "beacon": 0.99,
    "ppo_bilevel": 0.95,
    "hiper": 0.95,
}
LIMITS = {"minpro": (0.2, 0.2), "atpo": (0.003, 0.004), "apo": (0.2, 0.2)}


@pytest.mark.parametrize(("credit", "own"), DISCOUNTS.items())
def test_the_run_s_discount_takes_the_place_of_the_paper_s(credit, own):
    test_plugins.test_the_run_s_discount_takes_the_place_of_the_paper_s(credit, own)


@pytest.mark.parametrize(("surrogate", "own"), LIMITS.items())
def test_the_run_s_clip_limits_take_the_place_of_a_surrogate_s_own(surrogate, own):
    test_plugins.test_the_run_s_clip_limits_take_the_place_of_a_surrogate_s_own(surrogate, own)


@pytest.mark.parametrize(
    ("credit", "old", "words"),
    [
        ("beacon", "decay", "decay is not a setting; it is called discount"),
        ("ppo_bilevel", "gamma", "it is called token_discount"),
    ],
)
def test_a_setting_s_old_name_is_refused_with_the_new_one(credit, old, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        Methods.of(MSGRPOConfig(method_settings={"credit": {credit: {old: 0.9}}}))


@pytest.mark.parametrize(
    ("setting", "name"), [("task_sampling", "ghpo"), ("task_sampling", "pcl"), ("credit", "igpo"), ("credit", "hcapo")]
)
def test_methods_that_ask_the_model_alone_refuse_a_player_around_it(setting, name):
    with pytest.raises(ConfigError, match=f"{setting} = .* asks the model for moves of its own"):
        MSGRPOConfig(around="advised(random, learner)", **{setting: name})
