"""iStar on numbers written down by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Trajectory
from agents.msgrpo.credit.batch import Preferences
from tests.agents.msgrpo.hand_made import batch, trajectory


def episode(rewards: list[float], ratios: list[float], group: str = "a") -> Trajectory:
    """With such log-ratios of its responses, spread over two tokens each."""
    old = tuple(np.array([-1.0, -2.0]) for _ in ratios)
    own = tuple(np.array([-1.0 + ratio / 4, -2.0 + 3 * ratio / 4]) for ratio in ratios)
    return replace(trajectory(rewards, group=group, tokens=2), old_logprobs=old, reward_logprobs=own)


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


def test_noise_is_not_magnified() -> None:
    quiet = batch(episode([1.0], [1e-5]), episode([1.0], [-1e-5]))
    credit = METHODS.make("istar").assign(quiet, np.random.default_rng(0))
    assert np.abs(np.concatenate(credit.advantages)).max() == pytest.approx(2e-3)
    assert credit.preferences is not None
    assert not credit.preferences.pairs
