"""Draw rules: drawn frequencies against exact probabilities, and the gradient that the draws estimate."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import ConfigError, sample_episodes
from agents.msgrpo.credit import Credit
from agents.msgrpo.draws import DRAWS, MODES, effective_sample_size
from tests.agents.msgrpo.hand_made import batch, trajectory

# advantages per step of five episodes of one to three steps; their draw weights are the means of |A|: 2, 2, 0.5, 0, 1
ADVANTAGES = [np.array([2.0, -2.0]), np.array([0.0, -5.0, 1.0]), np.array([0.5]), np.zeros(2), np.array([-1.0, 1.0])]
EPISODES = batch(*(trajectory([0.0] * len(each)) for each in ADVANTAGES))
CREDIT = Credit.of(ADVANTAGES)
SCORES = [np.array([0.3, -1.1]), np.array([0.7, 0.2, -0.4]), np.array([2.0]), np.ones(2), np.array([0.6, 0.1])]
"""The score gradient of every step, one number each: any function of the steps."""
OF_EPISODES = np.array([2.0, -1.0, 0.5, 0.0, -0.25])
"""One advantage for each of five episodes."""


def check_frequencies(counts: np.ndarray, n: int, exact: np.ndarray) -> None:
    assert (np.abs(counts / n - exact) < 4.5 * np.sqrt(exact * (1 - exact) / n) + 1e-9).all()


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


def test_frequencies_without_replacement():
    rng, counts, n = np.random.default_rng(0), np.zeros(5), 8_000
    for _ in range(n):
        drawn = sample_episodes(OF_EPISODES, 2, rng, "aaw")
        assert len(set(drawn.tolist())) == 2
        counts[drawn] += 1
    check_frequencies(counts, n, inclusion_without_replacement(np.abs(OF_EPISODES), 2))
    assert sample_episodes(OF_EPISODES, 5, rng, "aaw").tolist() == [0, 1, 2, 4]  # never one without an advantage


@pytest.mark.parametrize("mode", ["aaw_replacement", "unbiased"])
def test_frequencies_with_replacement(mode):
    drawn = sample_episodes(OF_EPISODES, 20_000, np.random.default_rng(1), mode)
    check_frequencies(np.bincount(drawn, minlength=5), 20_000, np.abs(OF_EPISODES) / np.abs(OF_EPISODES).sum())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.integers(1, 20), st.sampled_from(MODES), st.integers(0, 99)
)
def test_draws_are_valid_and_repeatable(advantages, m, mode, seed):
    first = sample_episodes(advantages, m, np.random.default_rng(seed), mode)
    assert first.tolist() == sample_episodes(advantages, m, np.random.default_rng(seed), mode).tolist()
    assert ((first >= 0) & (first < len(advantages))).all()
    assert first.tolist() == sorted(first.tolist())
    assert mode == "off" or len(first) <= m


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="finite"):
        sample_episodes([1.0, float("nan")], 1, rng)
    for number in (0, 1.5):
        with pytest.raises(ValueError, match=f"m = {number} episodes can't be drawn"):
            sample_episodes([1.0], number, rng)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"mode must be one of .* got 'best'"):
        sample_episodes([1.0], 1, rng, "best")


def drawn_gradient(indices: np.ndarray, scale: np.ndarray) -> float:
    """The mean over draws of ``sum_t A_it f_it``: what the loss leads to with loss_normalizer = "episode"."""
    each = [c * float((ADVANTAGES[i] * SCORES[i]).sum()) for i, c in zip(indices.tolist(), scale.tolist(), strict=True)]
    return sum(each) / len(each)


@pytest.mark.parametrize("m", [1, 3])
def test_unbiased_draws_estimate_the_gradient_of_all_episodes_exactly(m):
    """The expectation over all sequences of m independent draws, with the scale that the rule gives each."""
    rule, probability = DRAWS.make("unbiased"), CREDIT.draw_weight / 5.5
    scale_of: dict[int, float] = {}
    rng = np.random.default_rng(1)
    while len(scale_of) < 4:  # what the rule says itself; episode 3 is never drawn
        drawn = rule.draw(EPISODES, CREDIT, m, rng)
        assert len(drawn.indices) == m
        scale_of.update(zip(drawn.indices.tolist(), drawn.scale.tolist(), strict=True))
    assert 3 not in scale_of
    expected = 0.0
    for sequence in itertools.product(scale_of, repeat=m):
        chance = float(np.prod(probability[list(sequence)]))
        scale = np.array([scale_of[i] for i in sequence])
        expected += chance * drawn_gradient(np.array(sequence), scale)
    assert expected == pytest.approx(sum(float((a * f).sum()) for a, f in zip(ADVANTAGES, SCORES, strict=True)) / 5)


def test_uniform_nonzero_leaves_out_what_teaches_nothing_and_weighs_nothing():
    rule, rng, counts = DRAWS.make("uniform_nonzero"), np.random.default_rng(3), np.zeros(5)
    for _ in range(2_000):
        counts[rule.draw(EPISODES, CREDIT, 2, rng).indices] += 1
    check_frequencies(counts, 2_000, np.array([0.5, 0.5, 0.5, 0.0, 0.5]))
    assert rule.draw(EPISODES, CREDIT, 9, rng).indices.tolist() == [0, 1, 2, 4]


def test_the_largest_are_drawn_and_equal_ones_by_chance():
    """Weights 2, 2, 0.5, 0 and 1."""
    rng = np.random.default_rng(4)
    draws = [DRAWS.make("largest").draw(EPISODES, CREDIT, m, rng).indices.tolist() for m in (2, 3, 9)]
    assert draws == [[0, 1], [0, 1, 4], [0, 1, 2, 4]]
    ones = {DRAWS.make("largest").draw(EPISODES, CREDIT, 1, rng).indices[0] for _ in range(40)}
    assert ones == {0, 1}


@pytest.mark.parametrize(("m", "above", "below"), [(4, {2}, {2}), (3, {1, 2}, {1, 2}), (9, {5}, {3})])
def test_balanced_draws_take_half_of_either_sign(m, above, below):
    """Five above 0, of any size, three below, and one without an advantage, which is never drawn."""
    signed, rng, counts = np.array([3.0, 0.1, 0.1, 0.1, 0.1, -0.2, -9.0, -0.2, 0.0]), np.random.default_rng(6), 0
    for _ in range(200):
        drawn = sample_episodes(signed, m, rng, "balanced")
        assert (signed[drawn] > 0).sum() in above
        assert (signed[drawn] < 0).sum() in below
        counts = counts + np.bincount(drawn, minlength=9)
    assert counts[8] == 0
    assert m != 4 or np.ptp(counts[:5]) < 60  # evenly, whatever the size


@pytest.mark.parametrize("name", DRAWS.names)
def test_without_any_advantage_nothing_is_drawn(name):
    nothing = Credit.of([np.zeros_like(each) for each in ADVANTAGES])
    assert len(DRAWS.make(name).draw(EPISODES, nothing, 2, np.random.default_rng(0)).indices) == 0
    some = DRAWS.make(name).draw(EPISODES, CREDIT, 3, np.random.default_rng(7))
    assert some.scale.shape == some.indices.shape


def test_effective_sample_size():
    assert effective_sample_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_sample_size(np.zeros(4)) == 0
