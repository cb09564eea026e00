"""Returns with luck taken out: unbiased, by one rule, with intervals that cover; measured on the slippery lake."""

import numpy as np
import pytest

from agents.common import intervals as stats
from benchmark.score.luck import FOLDS, LEAST, corrected, cross_fitted
from tests.benchmark.score.luck.lake_simulation import HORIZON, Lakes

POLICIES = {"optimal": 1.0, "strong": 0.95, "weak": 0.5, "random": 0.0}


@pytest.fixture(scope="module")
def lakes():
    return Lakes()


def estimates(lakes, skill, runs, episodes, seed=1):
    """``(true normalised score, plain estimates, luck-free estimates, coefficients)`` of many runs."""
    policy, uniform = lakes.policy(skill), lakes.value_of(lakes.policy(0.0))
    optimal = lakes.v[HORIZON][:, 0]
    true = (lakes.value_of(policy).mean() - uniform.mean()) / (optimal.mean() - uniform.mean())
    played = lakes.play(policy, runs, episodes, np.random.default_rng([seed, episodes]))
    plain, free, betas = [], [], []
    for returns, start, luck, layout in zip(played.returns, played.start, played.luck, played.layout, strict=True):
        found = corrected(returns, start, luck, (0.0, 1.0))
        table = np.stack([returns, uniform[layout], optimal[layout], found.values], axis=1)
        figures = [
            stats.normalised(0, 1, 2, (0.0, 1.0)),
            stats.normalised(3, 1, 2, ends=found.ends),
        ]
        one, other = stats.bootstrap(table, figures)
        plain.append(one)
        free.append(other)
        betas.append(found.beta)
    return true, plain, free, betas


def coverage(true, found):
    return np.mean([(one.low or one.value) - 1e-9 <= true <= (one.high or one.value) + 1e-9 for one in found])


def check_coverage(lakes, skill, runs, episodes):
    true, plain, free, _ = estimates(lakes, skill, runs, episodes)
    spread = 3 * np.sqrt(0.05 * 0.95 / runs)  # of a share of runs, three standard errors
    assert coverage(true, free) >= 0.95 - spread
    bias = np.mean([one.value for one in free]) - true
    assert abs(bias) <= 3.5 * np.std([one.value for one in free]) / np.sqrt(runs) + 1e-9
    assert np.std([one.value for one in free]) < np.std([one.value for one in plain])


@pytest.mark.slow
@pytest.mark.parametrize("episodes", [20, 50, 200])
@pytest.mark.parametrize("skill", POLICIES.values(), ids=POLICIES)
def test_intervals_cover_the_truth(lakes, skill, episodes):
    check_coverage(lakes, skill, runs=2000, episodes=episodes)


def test_an_optimal_players_score_is_one_exactly(lakes):
    _, plain, free, betas = estimates(lakes, 1.0, 20, 50)
    assert np.allclose([one.value for one in free], 1.0, rtol=0, atol=1e-12)
    assert all(0.85 < one.low < 0.95 for one in free)  # the next episode may still hold a mistake
    assert np.allclose([one.high for one in free], 1.0, rtol=0, atol=1e-9)
    assert set(betas) == {1.0}
    assert np.std([one.value for one in plain]) > 0.1


def test_a_weak_players_coefficient_is_smaller(lakes):
    _, _, _, betas = estimates(lakes, 0.0, 40, 200)
    assert 0.4 < np.mean(betas) < 0.8


def test_an_episode_has_no_part_in_its_own_coefficient():
    rng = np.random.default_rng(0)
    luck, outcome = rng.normal(size=(2, 40))
    outcome += 0.5 * luck
    before = cross_fitted(outcome, luck)
    for episode in (0, 13):
        changed = outcome.copy()
        changed[episode] += 5
        after = cross_fitted(changed, luck)
        fold = np.arange(40) % FOLDS == episode % FOLDS
        assert np.array_equal(before[fold], after[fold])
        assert not np.array_equal(before[~fold], after[~fold])


@pytest.mark.slow
def test_a_coefficient_fitted_with_the_episode_itself_would_be_biased():
    """Why folds: with a coefficient of all episodes the mean leans towards zero luck where luck is skewed."""
    rng = np.random.default_rng(1)
    luck = (rng.random((6000, LEAST)) < 0.1) - 0.1
    returns = luck**2 * 5  # correlated with luck in a way that isn't linear
    own, crossed = [], []
    for r, k in zip(returns, luck, strict=True):
        off = k - k.mean()
        beta = float(off @ r) / max(1e-12, float(off @ off))
        own.append((r - beta * k).mean())
        crossed.append((r - cross_fitted(r, k) * k).mean())
    true = 5 * 0.1 * 0.9
    error = np.std(crossed) / np.sqrt(len(crossed))
    assert abs(np.mean(crossed) - true) < 4 * error
    assert abs(np.mean(own) - true) > 8 * error


def test_few_episodes_are_refused():
    values = np.arange(LEAST - 1.0)
    assert corrected(values, values, values) is None
    values = np.arange(float(LEAST))
    assert corrected(values, values, values) is not None


def test_luck_that_never_varies_is_left_in():
    returns = np.arange(float(LEAST))
    found = corrected(returns, np.zeros(LEAST), np.zeros(LEAST))
    assert np.array_equal(found.values, returns)
    assert found.beta == 0


def test_the_order_of_folds_is_that_of_seeds_whatever_their_numbers():
    rng = np.random.default_rng(2)
    outcome, luck = rng.normal(size=(2, 30))
    longer = cross_fitted(np.concatenate([outcome, rng.normal(size=10)]), np.concatenate([luck, rng.normal(size=10)]))
    assert np.array_equal(cross_fitted(outcome, luck)[:FOLDS], cross_fitted(outcome, luck)[FOLDS : 2 * FOLDS])
    assert np.array_equal(longer[:FOLDS], longer[FOLDS : 2 * FOLDS])
