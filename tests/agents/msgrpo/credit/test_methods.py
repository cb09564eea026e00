"""What is true of every registered method, and methods that give an episode one advantage against figures by hand."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch, Credit
from tests.agents.msgrpo.hand_made import batch, trajectory

SIMPLE = [name for name in METHODS.names if not METHODS.find(name).needs]
"""They need nothing but states and rewards, so a batch written down by hand is enough."""


CENTRED = [name for name in SIMPLE if name not in ("rae", "riskpo", "marshal")]
"""They compare within groups; the others compare with what was played before, or with a seat's other groups."""


def ragged(order: Sequence[int] = range(9)) -> Batch:
    rng = np.random.default_rng(7)
    played = []
    for i in range(9):
        steps = 1 + i % 4
        rewards = rng.choice([-0.5, 0.0, 1.0], size=steps).tolist()
        played.append(trajectory(rewards, rng.integers(3, size=steps).tolist(), group="abc"[i % 3], horizon=5))
    return batch(*[played[i] for i in order])


def assigned(name: str, given: Batch) -> Credit:
    return METHODS.make(name).assign(given, np.random.default_rng(0))


@pytest.mark.parametrize("name", SIMPLE)
def test_one_finite_advantage_for_every_step(name):
    given = ragged()
    credit = assigned(name, given)
    assert [np.shape(each) for each in credit.advantages] == [(len(each),) for each in given.trajectories]
    assert all(np.isfinite(np.concatenate(list(credit.advantages))))
    assert any(np.concatenate(list(credit.advantages)))
    np.testing.assert_allclose(credit.draw_weight, Credit.of(credit.advantages).draw_weight)


@pytest.mark.parametrize("name", CENTRED)
def test_equal_episodes_have_exactly_nothing(name):
    """0.1 has no exact mean of three: rounding must not leave an advantage that a draw would find."""
    credit = assigned(name, batch(*[trajectory([0.1, 0.3], "AB") for _ in range(3)]))
    assert np.concatenate(list(credit.advantages)).tolist() == [0.0] * 6
    assert credit.draw_weight.tolist() == [0.0] * 3


@pytest.mark.parametrize("name", [name for name in CENTRED if name not in ("rloo", "rtg")])
def test_an_episode_alone_in_its_group_has_exactly_nothing(name):
    """RLOO and returns-to-go have no baseline for it, and leave it its return; their own tests have that."""
    given = batch(trajectory([0.7], "A", group=0), *[trajectory([value], "A", group=1) for value in (0.0, 1.0)])
    credit = assigned(name, given)
    assert np.asarray(credit.advantages[0]).tolist() == [0.0]
    assert credit.draw_weight[1] > 0


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


def test_rloo_and_dr_grpo():
    """The others' means are (2 + 6) / 2, (1 + 6) / 2 and (1 + 2) / 2; the one alone in its group has none."""
    assert advantages("rloo", of_returns([1, 7, 2, 6], "abaa")) == [1 - 4, 7, 2 - 3.5, 6 - 1.5]
    assert advantages("dr_grpo", of_returns([1, 7, 2, 6], "abaa")) == [-2, 0, -1, 3]
    assert advantages("dr_grpo", of_returns([4, 2]), discount=0.5) == [0.5, -0.5]  # the second step is paid


def test_lite_ppo_divides_by_the_spread_of_raw_returns():
    """The mean of 1, 3, 10, 14 is 7; the squares 36 + 16 + 9 + 49 = 110 over n - 1 = 3."""
    std = math.sqrt(110 / 3) + 1e-4
    found = advantages("lite_ppo", of_returns([1, 10, 3, 14], "abab"))
    np.testing.assert_allclose(found, [-1 / std, -2 / std, 1 / std, 2 / std], rtol=1e-12)


# ---------------------------------------------------------------- dapo's length reward and mask, by hand


CUT = np.array([False, True])
# returns 1, 0 and 0; with at most 10 tokens and a cache of 2, responses of 8, 9, 10 and 12 are paid 0, -0.5, -1 and -1
PLAYED = batch(
    trajectory([0.0, 1.0], tokens=[3, 9]),
    trajectory([0.0, 0.0], tokens=[8, 10], cut_off=CUT),
    trajectory([0.0], tokens=[12]),
)


def dapo(played: Batch, **settings: object) -> Credit:
    return METHODS.make("dapo", {"max_response_tokens": 10, **settings}).assign(played, np.random.default_rng(0))


def test_advantages_by_hand():
    """Returns 1 - 0.5, 0 - 1 and 0 - 1: mean -0.5, sample standard deviation sqrt(0.75)."""
    credit = dapo(PLAYED)
    std = 0.75**0.5 + 1e-6
    assert [each.tolist() for each in credit.advantages] == [
        pytest.approx([1 / std] * 2), pytest.approx([-0.5 / std] * 2), pytest.approx([-0.5 / std])
    ]  # fmt: skip
    assert credit.draw_weight.tolist() == pytest.approx([1 / std, 0.5 / std, 0.5 / std])
    assert credit.metrics["length_reward"] == pytest.approx((0 - 0.5 + 0 - 1 - 1) / 5)


def test_truncated_responses_may_be_masked():
    """Only the step that was cut off; its group's mean is the same, and the draw weight is the mean of what is left."""
    plain, masked = dapo(PLAYED), dapo(PLAYED, mask_truncated=True)
    (cut, kept), others = masked.advantages[1], zip(masked.advantages[::2], plain.advantages[::2], strict=True)
    assert (cut, kept) == (plain.advantages[1][0], 0.0)
    assert all(np.array_equal(*pair) for pair in others)
    assert masked.draw_weight[1] == pytest.approx(plain.draw_weight[1] / 2)


def test_the_reward_of_a_later_step_is_discounted_as_its_own_is():
    """Return 0.5 x 1 - 0.5 x 0.5 = 0.25 against 0 and 0, discounted by 0.5 in the second step."""
    played = batch(trajectory([0.0, 1.0], tokens=[3, 9]), *(trajectory([0.0], tokens=[1]) for _ in range(2)))
    credit = dapo(played, discount=0.5)
    std = np.std([0.25, 0.0, 0.0], ddof=1) + 1e-6
    assert credit.draw_weight[0] == pytest.approx((0.25 - 0.25 / 3) / std)
