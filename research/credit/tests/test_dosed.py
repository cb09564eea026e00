"""Credit of a known dose: the truth at 1, its correlation in between, and what the three kinds of noise share."""

from typing import Any

import numpy as np
import pytest

from agents import load_agent
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.errors import ConfigError
from research.credit.dosed import Dosed
from research.credit.instrument.batches import Setting, play
from research.credit.instrument.exact.truth import Truth
from textgames.scenarios import SCENARIOS

pytestmark = pytest.mark.slow  # every credit computes all that may happen in a game


@pytest.fixture(scope="module")
def played():
    policy, setting = load_agent("tiny", mode="direct", temperature=1.0), Setting(SCENARIOS["frozen-lake"], 2, 64)
    truth = Truth.of(policy, setting.game(), setting.starts(), setting.rounds)
    return play(policy, setting, 0), truth


def credit(batch: Batch, **settings: Any) -> np.ndarray:
    return np.concatenate(Dosed(**settings).assign(batch, np.random.default_rng(5)).advantages)


def test_a_full_dose_is_the_true_advantage_of_the_policy_that_played(played):
    batch, truth = played
    true = np.concatenate([truth.advantages(each) for each in batch.trajectories])
    np.testing.assert_allclose(credit(batch), true / np.sqrt(np.mean(true**2)), atol=1e-6)


@pytest.mark.parametrize("noise", ["step", "episode"])
def test_the_dose_is_the_correlation_and_the_size_is_that_of_the_truth(played, noise):
    true = credit(played[0])
    for share in (0.0, 0.25, 0.75):
        mixed = credit(played[0], share=share, noise=noise)
        assert np.mean(mixed * true) == pytest.approx(share, abs=0.15 if noise == "episode" else 0.08)
        assert np.mean(mixed**2) == pytest.approx(1, abs=0.2)


def test_noise_is_shared_by_an_episode_or_by_an_action_in_a_run(played):
    batch, _ = played
    by_episode = Dosed(share=0.0, noise="episode").assign(batch, np.random.default_rng(5)).advantages
    assert all(len(set(each.tolist())) == 1 for each in by_episode)
    actions = [action for each in batch.trajectories for action in each.actions]
    numbers = credit(batch, share=0.0, noise="action", seed=3).tolist()
    assert len(set(zip(actions, numbers, strict=True))) == len(set(actions)) == len(set(numbers)) > 1
    assert credit(batch, share=0.0, noise="action", seed=4).tolist() != numbers
    made: Any = METHODS.make("research.credit.dosed:Dosed", {"noise": "action"}, {"seed": 7})
    assert made.seed == 7
    with pytest.raises(ConfigError, match="model in this process"):
        Dosed().assign(Batch(batch.trajectories), np.random.default_rng(0))
