"""Methods that give an episode one advantage, against figures worked out by hand."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.msgrpo.credit import METHODS, Batch
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def of_returns(returns: Sequence[float], groups: Sequence[Any] | None = None) -> Batch:
    """Episodes of two steps, of which the second is paid."""
    labels = groups or [0] * len(returns)
    return batch(*[trajectory([0.0, value], group=label) for value, label in zip(returns, labels, strict=True)])


def advantages(name: str, given: Batch, **settings: Any) -> list[float]:
    credit = METHODS.make(name, settings).assign(given, RNG)
    for each, played in zip(credit.advantages, given.trajectories, strict=True):
        assert np.shape(each) == (len(played),)
        assert len(set(np.asarray(each).tolist())) == 1
    found = [float(each[0]) for each in credit.advantages]
    np.testing.assert_allclose(credit.draw_weight, np.abs(found))
    return found


def test_rloo():
    """The others' means are (2 + 6) / 2, (1 + 6) / 2 and (1 + 2) / 2; the one alone in its group has none."""
    assert advantages("rloo", of_returns([1, 7, 2, 6], "abaa")) == [1 - 4, 7, 2 - 3.5, 6 - 1.5]


def test_dr_grpo():
    assert advantages("dr_grpo", of_returns([1, 7, 2, 6], "abaa")) == [-2, 0, -1, 3]


def test_lite_ppo_divides_by_the_spread_of_raw_returns():
    """The mean of 1, 3, 10, 14 is 7; the squares 36 + 16 + 9 + 49 = 110 over n - 1 = 3."""
    std = math.sqrt(110 / 3) + 1e-4
    found = advantages("lite_ppo", of_returns([1, 10, 3, 14], "abab"))
    np.testing.assert_allclose(found, [-1 / std, -2 / std, 1 / std, 2 / std], rtol=1e-12)


def test_discounted_returns():
    """With 0.5, a reward of 4 in the second step is worth 2."""
    given = batch(trajectory([0.0, 4.0]), trajectory([1.0]))
    assert advantages("dr_grpo", given, discount=0.5) == [0.5, -0.5]
    assert advantages("rloo", given, discount=0.5) == [1, -1]
