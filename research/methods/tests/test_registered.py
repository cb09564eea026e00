"""Methods as they are registered: settings, what they have learnt in checkpoints, and the pages of the site."""

import io
import re
from typing import Any

import numpy as np
import pytest
import torch
from pages import overview
from pages.methods import formulas, method_page

from agents.msgrpo import ConfigError, Method, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.configuration.settings import POINTS
from agents.msgrpo.credit import METHODS
from tests.agents.msgrpo import test_plugins
from tests.agents.msgrpo.credit.test_all_methods import SIMPLE, ragged
from tests.agents.msgrpo.test_plugins import taken_up

DISCOUNTS = {"beacon": 0.99} | dict.fromkeys(["hgpo", "g2po", "gagpo", "ecpo", "hcapo", "ppo_bilevel", "hiper"], 0.95)
LIMITS = {"minpro": (0.2, 0.2), "atpo": (0.003, 0.004), "apo": (0.2, 0.2)}


@pytest.mark.parametrize(
    ("point", "name", "setting", "own"),
    [
        *[("credit", name, "discount", own) for name, own in DISCOUNTS.items()],
        *[("surrogate", name, "clip_low", low) for name, (low, _) in LIMITS.items()],
        *[("surrogate", name, "clip_high", high) for name, (_, high) in LIMITS.items()],
    ],
)
def test_the_run_s_settings_take_the_place_of_the_paper_s(point, name, setting, own):
    test_plugins.test_the_run_s_settings_take_the_place_of_the_paper_s(point, name, setting, own)


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


LEARNING = [name for name in SIMPLE if METHODS.find(name).state_dict is not Method.state_dict]
"""They keep something from one iteration to the next."""


@pytest.mark.parametrize("name", LEARNING)
def test_what_a_method_has_learnt_goes_into_checkpoints(name):
    """Saved after one batch, loaded by another object, it says of the next batch what the first object says."""
    assert {"rae", "riskpo"} <= set(LEARNING)
    method: Any = METHODS.make(name)
    rng = np.random.default_rng(0)
    method.assign(ragged(), rng)
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    other: Any = METHODS.make(name)
    fresh = other.state_dict()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.state_dict() != fresh
    for one, two in zip(method.assign(ragged(), rng).advantages, other.assign(ragged(), rng).advantages, strict=True):
        assert one.tolist() == two.tolist()


RAE, RISKPO = MSGRPOConfig(credit="rae"), MSGRPOConfig(credit="riskpo")
ON_RAE = MSGRPOConfig(credit="empg", method_settings={"credit": {"empg": {"base": "rae"}}})
ON_MSGRPO = MSGRPOConfig(credit="empg")


def test_what_another_name_stands_for_is_taken_up_where_it_learns_the_same():
    assert taken_up(RAE, ON_RAE) == taken_up(RAE, RAE) != Methods.of(RAE).state_dict()


@pytest.mark.parametrize("now", [RISKPO, ON_MSGRPO])
def test_what_another_method_has_learnt_is_left(now):
    with pytest.warns(UserWarning, match="credit: .* begins anew and leaves what RAE has learnt"):
        assert taken_up(RAE, now) == Methods.of(now).state_dict()
    with pytest.raises(ConfigError, match=r"credit: .* can't use what the checkpoint's method had learnt"):
        taken_up(RAE, now, told=False)


def test_the_sampler_of_levels_has_learnt_its_level():
    with pytest.warns(UserWarning, match="task_sampling: .* begins anew and leaves what LadderSampling has learnt"):
        taken_up(MSGRPOConfig(task_sampling="ladder"), MSGRPOConfig())


@pytest.mark.parametrize("name", ["empo", "otc", "gtalign", "regret"])
def test_a_reward_s_preset_has_it(name):
    assert type(Methods.of(MSGRPOConfig.preset(name)).reward).__name__.lower() == name


REGISTERED = [(point, name) for point, registry in POINTS.items() for name in registry.names]


def test_there_is_a_formula_for_every_method_and_for_nothing_else():
    assert sorted(REGISTERED) == sorted((point, name) for point, found in formulas().items() for name in found)


def test_costs_are_found():
    named, _ = overview.costs()
    assert named["tasks.ghpo"][0] in method_page("tasks", "ghpo")
    assert named["tasks.ghpo"][0] != named["tasks.dynamic"][0]


@pytest.mark.parametrize("name", ["hiper", "hcapo"])
def test_a_cost_that_was_not_measured_is_not_told(name):
    assert "wasn't measured" in method_page("credit", name)
    assert "times the processor time" not in method_page("credit", name)
