"""The overall score: floored over games, its interval where nobody reads, and who is told apart from whom."""

from itertools import combinations

import numpy as np
import pytest

from benchmark.score import statistics as stats
from benchmark.score.differences import paired_p_value
from benchmark.score.overall import OverallTest, game_weights, is_below_blind, overall_rows, suite_rows
from benchmark.score.references import References
from benchmark.score.scores import score_rows
from tests.benchmark.score.test_scores import board

LAKE, ICE, BIG, SNAKE = "frozen-lake", "frozen-lake-slippery", "frozen-lake-big", "snake"


def overall(results):
    return {row["agent"]: row for row in overall_rows(results, References(results))[1]}


def scores(results):
    return {(row["agent"], row["scenario"]): row for row in score_rows(results, References(results))}


def test_a_games_scenarios_share_its_weight():
    played = {"a": [1.0] * 20}
    results = board({LAKE: played, ICE: played, BIG: played, SNAKE: {"a": [0.0, 1.0] * 10}})
    weights = game_weights(results, [LAKE, ICE, BIG, SNAKE])
    assert weights == pytest.approx({LAKE: 1 / 6, ICE: 1 / 6, BIG: 1 / 6, SNAKE: 1 / 2})
    single = {name: scores(results)["a", name]["normalized"]["value"] for name in weights}
    assert min(single.values()) > 0
    expected = sum(weight * single[name] for name, weight in weights.items())
    assert overall(results)["a"]["normalized"]["value"] == pytest.approx(expected)


def test_a_score_below_0_counts_as_0():
    results = board({LAKE: {"a": [1.0] * 20}, SNAKE: {"a": [-1.0] * 20}})
    single = scores(results)
    assert single["a", LAKE]["normalized"]["value"] == 1.0
    assert single["a", SNAKE]["normalized"]["value"] < 0
    assert overall(results)["a"]["normalized"]["value"] == pytest.approx(0.5)
    # the score of a suite is made in the same way
    papers = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
    whole = board({name: {"a": [1.0 if name == LAKE else -1.0] * 20} for name in papers})
    (paper,) = suite_rows(whole, References(whole))
    assert paper["normalized"]["a"]["value"] == pytest.approx(1 / 4)


def test_success_is_over_the_same_games():
    results = board({LAKE: {"a": [1.0] * 20}, BIG: {"a": [0.0] * 20}, SNAKE: {"a": [1.0, 0.0] * 10}})
    success = overall(results)["a"]["success"]
    assert success["value"] == pytest.approx((0.5 + 0.5) / 2)
    assert success["low"] < success["value"] < success["high"]
    bandit = overall(board({"bandit": {"a": [9.0] * 20}, "bandit-bayes": {"a": [30.0] * 20}}))
    assert bandit["a"]["success"] is None  # a bandit knows no success


def test_whoever_is_below_0_everywhere_scores_0_and_nobody_is_above_the_others():
    results = board({LAKE: {"a": [0.0] * 40, "b": [0.0] * 40}, SNAKE: {"a": [-1.0] * 40, "b": [-3.0] * 40}})
    rows = overall(results)
    for row in rows.values():
        assert row["normalized"] == {"value": 0.0, "low": 0.0, "high": 0.0}
        assert (row["rank"], row["tied"], row["above_blind"]) == (1, True, False)
    # in Snake alone, by its mean return, a is above b
    assert scores(results)["b", SNAKE]["rank"] == 2


def test_a_disaster_in_one_game_takes_nothing_from_another():
    """b is the better player on the lake; what both lose in Snake, one much and one more, counts for neither."""
    returns = {LAKE: {"a": [1.0, 0.0] * 20, "b": [1.0] * 40}, SNAKE: {"a": [-1.0] * 40, "b": [-50.0] * 40}}
    rows = overall(board(returns))
    assert (rows["b"]["rank"], rows["a"]["rank"]) == (1, 2)
    assert rows["b"]["normalized"]["value"] == pytest.approx(0.5)
    test = OverallTest(results := board(returns), References(results), [LAKE, SNAKE])
    difference, p = test.compare("b", "a")
    assert difference == pytest.approx(rows["b"]["normalized"]["value"] - rows["a"]["normalized"]["value"])
    assert p < 0.001
    assert test.compare("a", "b") == pytest.approx((-difference, p))


def test_against_a_floored_score_only_what_is_above_0_counts():
    """a is a little above blind play and b far below: they differ by what a has, not by what b lacks."""
    lake = {"a": [1.0, 0.0, 0.0, 1.0, 0.0] * 8, "b": [0.0] * 40}
    results = board({LAKE: lake, SNAKE: {"a": [-1.0] * 40, "b": [-1.0] * 40}})
    references = References(results)
    assert is_below_blind(results, references, "b", LAKE)
    difference, p = OverallTest(results, references, [LAKE, SNAKE]).compare("a", "b")
    assert difference == pytest.approx(overall(results)["a"]["normalized"]["value"])
    assert p > 0.05
    assert paired_p_value(np.array(lake["a"])) < 0.001  # what the plain returns would have said


def test_whoever_reads_in_one_scenario_is_above_blind_play():
    """Though the noise of the other ones, in which it is a little below, reaches 0 over all."""
    lake = {"a": [1.0] * 30, "b": [1.0, 0.0, 0.0] * 10}
    noisy = {"a": [-12.0, 11.0] * 15, "b": [-12.0, 11.0] * 15}
    rows = overall(board({LAKE: lake, SNAKE: noisy}))
    assert rows["a"]["normalized"]["low"] == 0.0
    assert (rows["a"]["above_blind"], rows["b"]["above_blind"]) == (True, False)


def fair(rng, scenarios, episodes, truths):
    """Tables and statistics of an agent whose true scores are ``truths``, with a spread of 1 around them."""
    tables, statistics = [], []
    for _, truth in zip(range(scenarios), truths, strict=True):
        returns = rng.normal(truth, 1.0, episodes)
        tables.append(np.stack([returns, np.zeros(episodes), np.ones(episodes)], axis=1))
        statistics.append(stats.normalised(0, 1, 2))
    return tables, statistics


@pytest.mark.slow
@pytest.mark.parametrize(
    "truths",
    [[0.0] * 20, [0.0] * 4, [-3.0, -0.2, 0.0, 0.0, 0.3, 0.8], [0.5, 0.9], [-0.1] * 12, [-2.0] * 9 + [0.1] * 3],
    ids=["blind in 20", "blind in 4", "mixed", "good", "just below", "few above"],
)
def test_the_interval_covers_the_floored_mean_whoever_plays(truths):
    """And a player that doesn't read is rarely put above 0, in however many scenarios it plays."""
    rng = np.random.default_rng(len(truths))
    weights = [1 / len(truths)] * len(truths)
    true = float(np.maximum(0, truths).mean())
    held, above, naive = [], [], []
    for _ in range(100):
        tables, statistics = fair(rng, len(truths), 30, truths)
        below = [stats.bootstrap(table, [one], 0.99)[0].high < 0 for table, one in zip(tables, statistics, strict=True)]
        (estimate,) = stats.means_of_estimates([tables], [statistics], [0.95], weights, [below])
        held.append(estimate.low - 1e-12 <= true <= estimate.high)
        above.append(estimate.low > 0)
        parts = [
            np.maximum(0, stats._replicates(one, one.further(table), *stats._resampled(table, stream), stream)[0])
            for stream, (table, one) in enumerate(zip(tables, statistics, strict=True))
        ]
        naive.append(np.quantile(np.mean(parts, axis=0), 0.025) > 0)
    assert np.mean(held) >= 0.93
    if true == 0:
        assert np.mean(above) <= 0.05
    if truths == [0.0] * 20:  # a floor in every replicate would put nearly every such player above 0
        assert np.mean(naive) > 0.8


@pytest.mark.slow
def test_players_that_dont_read_are_rarely_told_apart_overall(monkeypatch):
    """Whether they are as good as blind play in every game, or some of them worse."""
    rng = np.random.default_rng(5)
    names = [LAKE, ICE, BIG, SNAKE, "snake-long", "snake-poison", "taxi", "blackjack"]
    told = []
    for _ in range(60):
        returns = {}
        for name in names:
            # blind play's own returns, in units of nothing: the ends of the scale are put below
            returns[name] = {agent: rng.normal(0 if agent in "ab" else -1.0, 1.0, 30).tolist() for agent in "abcd"}
        results = board(returns)
        references = References(results)
        monkeypatch.setattr(References, "scale", lambda self, scenario, seeds: unit_scale(len(seeds)))
        monkeypatch.setattr("benchmark.score.overall.luck_free", lambda cell, scenario: None)
        test = OverallTest(results, references, names)
        told.append(any(test.told_apart(a, b) for a, b in combinations("abcd", 2)))
    assert np.mean(told) <= 0.05


def unit_scale(episodes):
    from benchmark.score.references import BlindEnd, ReferenceEnd, Scale

    blind = BlindEnd(np.zeros(episodes), 0.0, "uniform", True)
    return Scale(blind, ReferenceEnd(np.ones(episodes), "optimal", "value iteration"))
