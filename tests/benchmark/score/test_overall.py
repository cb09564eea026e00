"""The overall score: floored over games, its interval where nobody reads, and who is told apart from whom."""

import numpy as np
import pytest

from agents.common import intervals as stats
from benchmark.score.comparison import board_family
from benchmark.score.differences import any_disjoint
from benchmark.score.overall import Overall, Part, floored_difference, game_weights, suite_rows
from benchmark.score.references import References
from benchmark.score.scores import score_rows
from tests.benchmark.score.test_scores import board

LAKE, ICE, BIG, SNAKE = "frozen-lake", "frozen-lake-slippery", "frozen-lake-big", "snake"


def overall(results):
    return {row["agent"]: row for row in Overall(results, References(results)).rows()}


def scores(results):
    return {(row["agent"], row["scenario"]): row for row in score_rows(results, References(results))}


def test_a_games_scenarios_share_its_weight():
    played = {"a": [1.0] * 4}
    results = board({LAKE: played, ICE: played, BIG: played, SNAKE: {"a": [0.0, 1.0] * 2}})
    weights = game_weights(results, [LAKE, ICE, BIG, SNAKE])
    assert weights == pytest.approx({LAKE: 1 / 6, ICE: 1 / 6, BIG: 1 / 6, SNAKE: 1 / 2})
    single = {name: scores(results)["a", name]["normalized"]["value"] for name in weights}
    assert min(single.values()) > 0
    expected = sum(weight * single[name] for name, weight in weights.items())
    assert overall(results)["a"]["normalized"]["value"] == pytest.approx(expected)


def test_a_score_below_0_counts_as_0():
    results = board({LAKE: {"a": [1.0] * 3}, SNAKE: {"a": [-1.0] * 3}})
    single = scores(results)
    assert single["a", LAKE]["normalized"]["value"] == 1.0
    assert single["a", SNAKE]["normalized"]["value"] < 0
    assert overall(results)["a"]["normalized"]["value"] == pytest.approx(0.5)
    # the score of a suite is made in the same way
    papers = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
    whole = board({name: {"a": [1.0 if name == LAKE else -1.0] * 3} for name in papers})
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
    for row in overall(results).values():
        assert row["normalized"] == {"value": 0.0, "low": 0.0, "high": 0.0}
        assert (row["rank"], row["tied"], row["above_blind"]) == (1, True, False)
    assert scores(results)["b", SNAKE]["rank"] == 2  # in Snake alone, by its mean return, a is above b


def test_a_disaster_in_one_game_takes_nothing_from_another():
    """b is the better player on the lake; what both lose in Snake, one much and one more, counts for neither."""
    returns = {LAKE: {"a": [1.0, 0.0] * 20, "b": [1.0] * 40}, SNAKE: {"a": [-1.0] * 40, "b": [-50.0] * 40}}
    rows = overall(board(returns))
    assert (rows["b"]["rank"], rows["a"]["rank"]) == (1, 2)
    assert rows["b"]["normalized"]["value"] == pytest.approx(0.5)
    test = Overall(results := board(returns), References(results), [LAKE, SNAKE])
    (difference, low, high), p, error = test.difference("b", "a")
    assert difference == pytest.approx(rows["b"]["normalized"]["value"] - rows["a"]["normalized"]["value"])
    assert 0 < low < difference < high
    assert p < 0.001
    turned = test.difference("a", "b")
    assert turned.estimate == pytest.approx((-difference, -high, -low), abs=1e-3)
    assert (turned.p, turned.error) == pytest.approx((p, error))


def test_whoever_reads_in_one_scenario_is_above_blind_play():
    """Though the noise of the other ones, in which it is a little below, reaches 0 over all."""
    lake = {"a": [1.0] * 30, "b": [1.0, 0.0, 0.0] * 10}
    noisy = {"a": [-12.0, 11.0] * 15, "b": [-12.0, 11.0] * 15}
    rows = overall(board({LAKE: lake, SNAKE: noisy}))
    assert rows["a"]["normalized"]["low"] == 0.0
    assert (rows["a"]["above_blind"], rows["b"]["above_blind"]) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("truths", [[0.0] * 20, [-3.0, -0.2, 0.0, 0.0, 0.3, 0.8], [-2.0] * 9 + [0.1] * 3])
def test_the_interval_covers_the_floored_mean_whoever_plays(truths):
    """And a player that doesn't read is rarely put above 0, in however many scenarios it plays."""
    rng = np.random.default_rng(len(truths))
    weights, statistics = [1 / len(truths)] * len(truths), [stats.normalised(0, 1, 2)] * len(truths)
    true = float(np.maximum(0, truths).mean())
    held, above = [], []
    for _ in range(100):
        tables = [np.stack([rng.normal(truth, 1.0, 30), np.zeros(30), np.ones(30)], axis=1) for truth in truths]
        below = [stats.bootstrap(table, [one], 0.99)[0].high < 0 for table, one in zip(tables, statistics, strict=True)]
        (estimate,) = stats.means_of_estimates([tables], [statistics], [0.95], weights, [below])
        held.append(estimate.low - 1e-12 <= true <= estimate.high)
        above.append(estimate.low > 0)
    assert np.mean(held) >= 0.93
    if true == 0:  # a floor in every replicate would put nearly every such player above 0
        assert np.mean(above) <= 0.05


@pytest.mark.parametrize("agents", ["ab", "abcdef"])
def test_overall_ranks_are_corrected_for_the_whole_board(agents):
    """What tells two agents apart alone is a tie among six: with their pairs, more could have come out by chance."""
    lake = {agent: [1.0] * 50 for agent in agents} | {"b": [1.0] * 43 + [0.0] * 7}
    results = board({LAKE: lake, "guess-number": {agent: [0.5, 1.0] * 25 for agent in agents}})
    found = Overall(results, References(results)).difference("a", "b")
    assert (board_family(results) * found.p < 0.05) == (agents == "ab")
    rows = overall(results)
    assert not any_disjoint([rows["a"]["normalized"]], [rows["b"]["normalized"]])
    assert (rows["b"]["rank"], rows["b"]["tied"]) == ((2, False) if agents == "ab" else (1, True))
    ranks = {row["agent"]: row["rank"] for row in score_rows(results) if row["scenario"] == LAKE}
    assert ranks["b"] == (2 if agents == "ab" else 1)


def parts(columns, bounds=(), seeds=None):
    """An agent's part of several scenarios: its returns in each are scores between 0 and 1."""
    found = []
    for stream, returns in enumerate(columns):
        table = np.stack([np.asarray(returns, float), np.zeros(len(returns)), np.ones(len(returns))], axis=1)
        one = stats.normalised(0, 1, 2, bounds or ((0, 1) if np.ptp(returns) < 1e-9 else ()))
        is_below = (stats.bootstrap(table, [one], 0.99)[0].high or 0.0) < 0
        found.append(Part.of(np.arange(len(table)) if seeds is None else seeds, table, one, is_below, stream))
    return found


def test_the_p_value_of_a_difference_says_what_its_interval_says():
    rng = np.random.default_rng(31)
    sides = []
    for shift in rng.uniform(0, 0.6, 80):
        found = floored_difference(*(parts([rng.normal(mean, 0.4, 20)]) for mean in (0.5 + shift, 0.5)), [1.0])
        assert (found.p < 0.05) == (found.estimate.low > 0 or found.estimate.high < 0)
        sides.append(found.p < 0.05)
    assert 0 < np.mean(sides) < 1


@pytest.mark.parametrize("unequal", [5, 6, 8, 12, 20])
def test_the_overall_test_of_a_few_differences_of_one_sign_is_that_of_their_signs(unequal):
    """Also beside a scenario in which the two did the same, which must not make it weaker."""
    same = [0.0, 1.0] * 10
    a, b = parts([[1.0] * 20, same], (0, 1)), parts([[1.0] * (20 - unequal) + [0.0] * unequal, same], (0, 1))
    found = floored_difference(a, b, [0.5, 0.5])
    assert 0.4 * 2 / 2**unequal < found.p < max(3 * 2 / 2**unequal, 1e-4)
    assert found.estimate.value == pytest.approx(unequal / 40)


def test_a_disaster_is_no_difference_and_hides_none_elsewhere():
    """It may take the score of its own scenario, and no more: nine won scenarios were hidden by one."""
    lucky, other = [0.75, 0.76] * 5, [0.75, 0.76] * 4 + [0.75, -4.25]  # equal players; one had it in ten starts
    assert floored_difference(parts([lucky]), parts([other]), [1.0]).p > 0.5
    noise = [0.75, 0.76] * 10
    a, b = parts([[1.0] * 20, noise]), parts([[0.0, 0.01] * 10, [*noise[1:], -50.0]])
    assert not any(part.is_below for part in (*a, *b))
    assert floored_difference(a, b, [0.5, 0.5]).p < 0.01
    assert floored_difference(b, a, [0.5, 0.5]).p < 0.01


def test_agents_on_other_starts_are_compared_unpaired():
    rng = np.random.default_rng(2)
    hard = rng.random(30)
    own = [parts([hard + shift], seeds=np.arange(30) + first) for shift, first in ((0.1, 0), (0.0, 0), (0.0, 30))]
    paired, unpaired = (floored_difference(own[0], other, [1.0]) for other in own[1:])
    assert paired.p < 0.001
    assert unpaired.p > paired.p
    assert floored_difference(own[0], parts([hard[:20]], seeds=np.arange(20)), [1.0]).p > 0.05


SHAPES = {
    # a player's returns on the starts of one scenario, whose true scores are equal for all players, floored at 0
    "hard and easy starts": (lambda rng, hardness, agent: rng.binomial(1, hardness), (0, 1)),
    "rare": (lambda rng, hardness, agent: rng.binomial(1, 0.05, len(hardness)), (0, 1)),
    "0 and a little below": (lambda rng, hardness, agent: rng.normal(-0.3 * (agent % 2), 1, len(hardness)), ()),
    "rare disaster": (lambda rng, hardness, agent: np.where(rng.random(len(hardness)) < 0.95, 0.75, -4.25), ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("starts", [10, 50])
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_agents_are_rarely_told_apart_overall(shape, starts):
    """In no more than 5% of boards of two agents over two scenarios, but for chance."""
    rng, (draw, bounds) = np.random.default_rng([len(shape), starts]), SHAPES[shape]
    p_values = []
    for _ in range(200):
        hardness = rng.beta(2, 2, (2, starts))
        agents = [parts([draw(rng, own, agent) for own in hardness], bounds) for agent in range(2)]
        p_values.append(floored_difference(*agents, [0.5, 0.5]).p)
    assert np.mean(np.array(p_values) < 0.05) <= 0.08  # two standard errors more
