"""What methods have learnt goes into checkpoints, of their own or of the method that they are made of."""

import io
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, Method, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import METHODS
from tests.agents.msgrpo.credit.test_all_methods import SIMPLE, ragged
from tests.agents.msgrpo.test_plugins import taken_up

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
