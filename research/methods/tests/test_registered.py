"""Methods as they are registered: settings, what they have learnt in checkpoints, and the pages of the site."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from pages import measurements
from pages.methods import formulas, method_page

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.configuration.settings import POINTS
from agents.msgrpo.credit import METHODS
from research.methods import PRESETS
from tests.agents.msgrpo.credit.test_methods import ragged
from tests.agents.msgrpo.test_plugins import taken_up

DISCOUNTS = {"beacon": 0.99} | dict.fromkeys(["hgpo", "g2po", "gagpo", "ecpo", "hcapo", "ppo_bilevel", "hiper"], 0.95)


def test_settings_are_the_paper_s_and_their_old_names_are_refused_with_the_new_ones():
    assert {name: METHODS.settings_of(name)["discount"]["default"] for name in DISCOUNTS} == DISCOUNTS
    for name, old, words in (("beacon", "decay", "called discount"), ("ppo_bilevel", "gamma", "called token_discount")):
        with pytest.raises(ConfigError, match=f"{old} is not a setting; it is {words}"):
            Methods.of(MSGRPOConfig(method_settings={"credit": {name: {old: 0.9}}}))


@pytest.mark.parametrize(("setting", "name"), [("task_sampling", "ghpo"), ("credit", "hcapo")])
def test_methods_that_ask_the_model_alone_refuse_a_player_around_it(setting, name):
    with pytest.raises(ConfigError, match=f"{setting} = .* asks the model for moves of its own"):
        MSGRPOConfig(around="advised(random, learner)", **{setting: name})


@pytest.mark.parametrize("name", ["rae", "riskpo"])
def test_what_a_method_has_learnt_goes_into_checkpoints(name):
    """Saved after one batch, loaded by another object, it says of the next batch what the first object says."""
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


RAE = MSGRPOConfig(credit="rae")
ON_RAE = MSGRPOConfig(credit="empg", method_settings={"credit": {"empg": {"base": "rae"}}})


def test_what_a_method_has_learnt_is_taken_up_by_those_that_learn_the_same_and_left_by_others():
    assert taken_up(RAE, ON_RAE) == taken_up(RAE, RAE) != Methods.of(RAE).state_dict()
    for now in (MSGRPOConfig(credit="riskpo"), MSGRPOConfig(credit="empg")):
        with pytest.warns(UserWarning, match="credit: .* begins anew and leaves what RAE has learnt"):
            assert taken_up(RAE, now) == Methods.of(now).state_dict()
        with pytest.raises(ConfigError, match=r"credit: .* can't use what the checkpoint's method had learnt"):
            taken_up(RAE, now, told=False)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_methods_that_it_names(name):
    methods = Methods.of(MSGRPOConfig.preset(name))
    made = {"credit": methods.credit, "reward": methods.reward, "surrogate": methods.surrogate}
    for point in made.keys() & PRESETS[name].keys():
        registered = POINTS[point].find(PRESETS[name][point])
        assert isinstance(made[point], registered)


def test_there_is_a_formula_for_every_method_and_for_nothing_else():
    registered = [(point, name) for point, registry in POINTS.items() for name in registry.names]
    assert sorted(registered) == sorted((point, name) for point, found in formulas().items() for name in found)


def test_costs_are_told_if_they_were_measured():
    named, _ = measurements.costs()
    assert named["tasks.ghpo"][0] in method_page("tasks", "ghpo")
    assert named["tasks.ghpo"][0] != named["tasks.dynamic"][0]
    assert "wasn't measured" in method_page("credit", "hiper")
    assert "times the processor time" not in method_page("credit", "hiper")
