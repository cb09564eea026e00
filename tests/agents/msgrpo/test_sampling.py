"""Episode sampling against exact probabilities."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import ConfigError, sample_episodes
from agents.msgrpo.draws import MODES

ADVANTAGES = np.array([2.0, -1.0, 0.5, 0.0, -0.25])
DRAWS = 20_000


def inclusion_without_replacement(weights: np.ndarray, m: int) -> np.ndarray:
    """Exact: the sum over all orders of drawing one after the other."""
    result = np.zeros(len(weights))
    for order in itertools.permutations(np.flatnonzero(weights), m):
        probability, left = 1.0, weights.sum()
        for index in order:
            probability *= weights[index] / left
            left -= weights[index]
        result[list(order)] += probability
    return result


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3])
def test_frequencies_without_replacement(m: int) -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(5)
    for _ in range(DRAWS):
        drawn = sample_episodes(ADVANTAGES, m, rng, "aaw")
        assert len(set(drawn.tolist())) == m
        counts[drawn] += 1
    exact = inclusion_without_replacement(np.abs(ADVANTAGES), m)
    error = np.sqrt(exact * (1 - exact) / DRAWS) + 1e-9
    assert (np.abs(counts / DRAWS - exact) < 4.5 * error).all()


@pytest.mark.parametrize("mode", ["aaw_replacement", "unbiased"])
def test_frequencies_with_replacement(mode: str) -> None:
    drawn = sample_episodes(ADVANTAGES, DRAWS, np.random.default_rng(1), mode)
    exact = np.abs(ADVANTAGES) / np.abs(ADVANTAGES).sum()
    error = np.sqrt(exact * (1 - exact) / DRAWS) + 1e-9
    assert (np.abs(np.bincount(drawn, minlength=5) / DRAWS - exact) < 4.5 * error).all()


def test_uniform_and_off() -> None:
    rng, counts = np.random.default_rng(3), np.zeros(5)
    for _ in range(5_000):
        counts[sample_episodes(ADVANTAGES, 2, rng, "uniform")] += 1
    assert (np.abs(counts / 5_000 - 0.4) < 4.5 * np.sqrt(0.24 / 5_000)).all()
    assert sample_episodes(ADVANTAGES, 2, rng, "off").tolist() == [0, 1, 2, 3, 4]


def test_an_episode_without_advantage_is_never_drawn() -> None:
    for seed in range(200):
        assert sample_episodes(ADVANTAGES, 5, np.random.default_rng(seed), "aaw").tolist() == [0, 1, 2, 4]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.integers(1, 20), st.sampled_from(MODES), st.integers(0, 99)
)
def test_draws_are_valid_and_repeatable(advantages: list[float], m: int, mode: str, seed: int) -> None:
    first = sample_episodes(advantages, m, np.random.default_rng(seed), mode)
    assert first.tolist() == sample_episodes(advantages, m, np.random.default_rng(seed), mode).tolist()
    assert ((first >= 0) & (first < len(advantages))).all()
    assert first.tolist() == sorted(first.tolist())
    assert mode == "off" or len(first) <= m


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="finite"):
        sample_episodes([1.0, float("nan")], 1, rng)
    for number in (0, 1.5):
        with pytest.raises(ValueError, match=f"m = {number} episodes can't be drawn"):
            sample_episodes([1.0], number, rng)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="mode = 'best'"):
        sample_episodes([1.0], 1, rng, "best")
