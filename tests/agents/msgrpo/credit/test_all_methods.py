"""What is true of every registered method, so that a new one is looked at without anybody thinking of it."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch, Credit
from tests.agents.msgrpo.hand_made import batch, trajectory

SIMPLE = [name for name in METHODS.names if not METHODS.find(name).needs]
"""They need nothing but states and rewards, so a batch written down by hand is enough."""


CENTRED = [name for name in SIMPLE if name not in ("rae", "riskpo", "marshal")]
"""They compare within groups; the others compare with what was played before, or with a seat's other groups."""


UNORDERED = [name for name in SIMPLE if name not in ("rae", "riskpo")]
"""The running mean of a seat depends on the order of the episodes, and so does which of them a bundle adds up."""


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


@pytest.mark.parametrize("name", UNORDERED)
def test_the_order_of_the_episodes_does_not_matter(name):
    order = np.random.default_rng(0).permutation(9).tolist()
    before, after = assigned(name, ragged()), assigned(name, ragged(order))
    for place, index in enumerate(order):
        np.testing.assert_allclose(after.advantages[place], before.advantages[index], rtol=1e-9, atol=1e-12)


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
