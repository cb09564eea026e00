"""iStar on numbers written down by hand."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Trajectory
from agents.msgrpo.credit.batch import Preferences
from tests.agents.msgrpo.hand_made import batch, trajectory


def episode(rewards: list[float], ratios: list[float], group: str = "a") -> Trajectory:
    return trajectory(rewards, group=group, log_ratios=np.array(ratios))


GIVEN = batch(
    episode([0.0, 1.0], [0.2, 0.4]), episode([0.0], [-0.8]), episode([0.0, 0.0], [0.0, 0.2]), episode([1.0], [0.1], "b")
)


def assigned(**settings: Any) -> Any:
    return METHODS.make("istar", settings).assign(GIVEN, np.random.default_rng(0))


def test_returns_and_rewards_less_those_of_the_others() -> None:
    credit = assigned(step_weight=0.5)
    ratios = np.array([0.2, 0.4, -0.8, 0.0, 0.2]) / 0.8  # of group a; the largest of the batch is 0.8
    others = (ratios - ratios.mean()) * 5 / 4
    whole = np.array([1.0, 1.0, -0.5, -0.5, -0.5])
    np.testing.assert_allclose(np.concatenate(credit.advantages[:3]), whole + 0.5 * others)
    np.testing.assert_allclose(credit.advantages[3], [1.0 + 0.5 * 0.1 / 0.8])  # alone: nothing is taken off
    assert credit.preferences == Preferences([(0, 1), (0, 2)], 0.05)
    assert credit.metrics["preferences"] == 2
    assert credit.metrics["reward_log_ratio"] == pytest.approx(0.8)


def test_without_the_steps_it_is_leave_one_out() -> None:
    for mine, plain in zip(
        assigned(step_weight=0.0).advantages,
        METHODS.make("rloo").assign(GIVEN, np.random.default_rng(0)).advantages,
        strict=True,
    ):
        np.testing.assert_allclose(mine, plain)


def test_before_the_reward_model_has_learnt_equal_episodes_have_exactly_nothing() -> None:
    credit = METHODS.make("istar").assign(batch(episode([1.0], [0.0]), episode([1.0], [0.0])), np.random.default_rng(0))
    assert not np.concatenate(credit.advantages).any()
    assert credit.preferences is not None
    assert not credit.preferences.pairs


def test_needs_what_a_reward_model_says() -> None:
    with pytest.raises(ValueError, match="the trajectory has no log_ratios"):
        METHODS.make("istar").assign(batch(trajectory([1.0])), np.random.default_rng(0))
