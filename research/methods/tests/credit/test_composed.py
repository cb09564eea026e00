"""Choice and EMPG by hand on tokens, what they pass on of their base method, and what they refuse."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import METHODS, Batch, Credit, Floats, Segment
from agents.msgrpo.credit.batch import Preferences
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)
PARTS = (Segment("think", 0, 3), Segment("plan", 3, 4), Segment("action", 4, 6))


def spoken() -> Batch:
    """Two episodes of a group that return 1 and 0: z-values of 1/sqrt(2) and -1/sqrt(2)."""
    won, lost = trajectory([0.0, 1.0], "AB"), trajectory([0.0], "A")
    return batch(
        replace(won, response_ids=((1,) * 7, (1,) * 4), segments=(PARTS, (Segment("action", 1, 3),))),
        replace(lost, response_ids=((1,) * 3,), segments=((Segment("think", 0, 3),),)),
    )


def test_only_the_tokens_of_the_named_parts_have_advantages():
    credit = METHODS.make("choice").assign(spoken(), RNG)
    a = np.sqrt(0.5)
    np.testing.assert_allclose(credit.advantages[0][0], [0, 0, 0, a, a, a, 0], rtol=1e-5)
    np.testing.assert_allclose(credit.advantages[0][1], [0, a, a, 0], rtol=1e-5)
    # nothing was chosen in the form that is asked for, and that is what the update has to be about
    np.testing.assert_allclose(credit.advantages[1][0], [-a, -a, -a], rtol=1e-5)
    np.testing.assert_allclose(credit.draw_weight, [a, a], rtol=1e-5)  # the base method's own
    actions = METHODS.make("choice", {"credited": ("action",)}).assign(spoken(), RNG)
    assert np.flatnonzero(actions.advantages[0][0]).tolist() == [4, 5]


class Tokens:
    """Tells tokens apart: the k-th of a response has the advantage k."""

    needs = frozenset({"values"})
    heads = {"own": "token"}  # noqa: RUF012

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        targets: dict[str, list[Floats]] = {"own": [np.zeros(2)]}
        told: dict[str, Any] = {"metrics": {"seen": 1.0}, "preferences": Preferences([(0, 0)], 1.0)}
        rows = [[np.arange(1.0, len(ids) + 1) for ids in each.response_ids] for each in batch.trajectories]
        return Credit.of(rows, value_targets=targets, **told)


def test_a_base_method_that_tells_tokens_apart_keeps_its_own_and_all_that_it_says():
    """H is 1 and 0, so exp(-h) is 1/e and 1; the first step is paid half a 1 more for what it leads to."""
    base = f"{__name__}:Tokens"
    choice = METHODS.make("choice", {"base": base})
    assert choice.needs == {"values", "segments"}
    assert choice.assign(spoken(), RNG).advantages[0][0].tolist() == [0, 0, 0, 4, 5, 6, 0]
    empg: Any = METHODS.make("empg", {"base": base, "zeta": 0.5})
    assert (empg.needs, empg.heads) == ({"values", "entropies"}, {"own": "token"})
    credit = empg.assign(batch(trajectory([0.0, 0.0], tokens=[2, 1], entropies=np.array([1.0, 0.0]))), RNG)
    mean = (1 + 1 / math.e) / 2
    rows = [[1 / math.e / mean + 0.5, 2 / math.e / mean + 0.5], [1 / mean]]
    level = (sum(rows[0]) / 2 + rows[1][0]) / 2
    for got, row in zip(credit.advantages[0], rows, strict=True):
        np.testing.assert_allclose(got, [each - level for each in row], rtol=1e-6)
    assert credit.value_targets is not None
    assert credit.metrics == {"seen": 1.0}
    assert credit.preferences == Preferences([(0, 0)], 1.0)


def test_the_base_method_has_its_own_table_of_settings():
    settings = {"credit": {"empg": {"base": "rae"}, "rae": {"decay": 0.5}}}
    composed: Any = Methods.of(MSGRPOConfig(credit="empg", method_settings=settings)).credit
    assert composed._method == METHODS.make("rae", {"decay": 0.5}) != METHODS.make("rae")


def test_what_nothing_can_be_made_of_is_refused():
    with pytest.raises(ConfigError, match="nothing would be learnt"):
        METHODS.make("choice", {"credited": ()})
    with pytest.raises(ConfigError, match=r"\[credit.choice\] base = 'choice' .*: accepted is another method"):
        METHODS.make("choice", {"base": "choice"})
    with pytest.raises(ConfigError, match=r"'msgrop' can't be used .did you mean 'msgrpo'"):
        METHODS.make("empg", {"base": "msgrop"})
