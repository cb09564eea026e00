"""Bradley-Terry ratings: known strengths are found again, whoever sits first."""

from itertools import pairwise
from math import log10

import choix
import numpy as np
import pytest

from benchmark.score.ratings import Game, bradley_terry, over_games, strengths_of_many


def test_two_agents_have_the_ratings_that_their_record_says():
    games = [Game("a", "b", 1.0)] * 75 + [Game("a", "b", 0.0)] * 25
    best, worst = bradley_terry(games)
    assert (best.agent, worst.agent) == ("a", "b")
    # 3:1 is 400 * log10(3) = 190.8 points apart; the regularisation pulls them together a little
    assert best.rating.value - worst.rating.value == pytest.approx(190.8, abs=3)
    assert best.rating.value == pytest.approx(-worst.rating.value)
    assert (best.games, best.wins, best.losses, best.draws) == (100, 75, 25, 0)
    assert best.rating.low < best.rating.value < best.rating.high
    turned = [Game(game.second, game.first, 1 - game.result) for game in games]
    assert bradley_terry(turned)[0].rating.value == pytest.approx(best.rating.value)
    for rating in bradley_terry([Game("a", "b", 0.5)] * 20):  # a draw is half a win for each, and no certainty
        assert rating.rating.low < -10 < rating.rating.value + 10
        assert (rating.rating.value, rating.draws) == (pytest.approx(0.0, abs=1e-6), 20)
        assert rating.rating.high > 10


def test_who_won_or_lost_everything_has_no_finite_rating():
    ratings = bradley_terry([Game("a", "b", 1.0)] * 30)
    assert [(one.agent, one.rating, one.wins, one.losses) for one in ratings] == [
        ("a", None, 30, 0),
        ("b", None, 0, 30),
    ]
    # c lost everything, which says nothing about a and b
    games = [Game("a", "b", 1.0), Game("b", "a", 1.0)] * 10
    with_c = {one.agent: one for one in bradley_terry(games + [Game("a", "c", 1.0)] * 10)}
    assert with_c["c"].rating is None
    alone = {one.agent: one for one in bradley_terry(games)}
    assert with_c["a"].rating == alone["a"].rating
    first, second = bradley_terry([Game("a", "b", 0.5)])  # a single game has no interval
    assert first.rating[1:] == second.rating[1:] == (None, None)
    assert bradley_terry([Game("a", "a", 1.0)] * 5) == bradley_terry([]) == []


def test_agents_that_never_met_are_not_pulled_together():
    """In a chain of 16, each of whom wins 6 of 10 games against the next, the ends are 1,056 points apart.

    A prior on all pairs left 290 of them.
    """
    names, gap = [f"{place:02d}" for place in range(16)], 400 * log10(1.5)
    games = [
        Game(a, b, float(k < 6), 10 * place + k) for place, (a, b) in enumerate(pairwise(names)) for k in range(10)
    ]
    ratings = {one.agent: one.rating for one in bradley_terry(games)}
    assert ratings["00"].value - ratings["15"].value == pytest.approx(15 * gap, rel=0.05)
    for place, name in enumerate(names):
        assert ratings[name].low <= (7.5 - place) * gap <= ratings[name].high


def test_a_table_of_several_is_a_game_for_every_two_agents_by_their_mean_returns():
    games = Game.of_table([("a", 3.0), ("b", 2.0), ("a", 0.0), ("c", 1.5), ("b", 2.0)], seed=7)
    assert games == [Game("a", "b", 0.0, 7), Game("a", "c", 0.5, 7), Game("b", "c", 1.0, 7)]
    assert Game.of_table([("a", 1.0), ("a", 2.0), ("a", 0.0)]) == []


@pytest.mark.slow
def test_larger_tables_show_a_circle_and_groups_that_never_met():
    beats = {"rock": "scissors", "scissors": "paper", "paper": "rock"}

    def table(a, b, seed):
        """Three seats, a in two of them; whoever's kind beats the other's gets the higher returns."""
        return Game.of_table([(a, float(beats[a] == b)), (b, float(beats[b] == a)), (a, float(beats[a] == b))], seed)

    games = [game for a in beats for b in beats if a != b for seed in range(10) for game in table(a, b, seed)]
    circle = {one.agent: one for one in bradley_terry(games)}
    assert all(one.in_cycle for one in circle.values())
    assert [one.rating.value for one in circle.values()] == pytest.approx([0.0] * 3, abs=1e-6)
    apart = [
        game
        for seed in range(10)
        for a, b in ("xy", "zw")
        for game in Game.of_table([(a, float(seed % 2)), (b, 0.5), (a, float(seed % 2))], seed)
    ]
    both = {one.agent: one for one in bradley_terry(games + apart)}
    assert len({one.group for one in both.values()}) == 3
    assert both["rock"].group == both["paper"].group != both["x"].group == both["y"].group != both["z"].group
    assert not both["x"].in_cycle
    assert both["rock"].rating.value == circle["rock"].rating.value


@pytest.mark.slow
def test_games_of_one_seed_are_no_more_evidence_than_one_of_them():
    rng = np.random.default_rng(3)
    results = [float(rng.random() < 0.7) for _ in range(30)]
    once = bradley_terry([Game("a", "b", result, seed) for seed, result in enumerate(results)])
    again = bradley_terry([Game("a", "b", result, seed) for seed, result in enumerate(results) for _ in range(5)])
    apart = bradley_terry([Game("a", "b", result) for result in results for _ in range(5)])
    widths = [rated[0].rating.high - rated[0].rating.low for rated in (once, again, apart)]
    assert widths[1] > 1.5 * widths[2]
    assert widths[1] == pytest.approx(widths[0], rel=0.5)
    assert bradley_terry([Game("a", "b", 1.0, 4), Game("b", "a", 1.0, 4)])[0].rating.low is None  # a single seed


@pytest.mark.parametrize("count", [2, 12])
def test_many_tables_at_once_get_what_choix_gives_each(count):
    rng = np.random.default_rng(count)
    points = rng.exponential(size=(40, count, count)) * (1 - np.eye(count))
    choixs = [choix.ilsr_pairwise_dense(table, alpha=0.1, tol=1e-4) for table in points]
    expected = [(strengths - strengths.mean()) * 400 / np.log(10) for strengths in choixs]
    assert strengths_of_many(points) == pytest.approx(np.array(expected), abs=1e-6)


def played(rng, chances, seeds):
    """Every pair plays a seed twice, seats changed; the start favours one of them in both."""
    games = []
    for (a, b), chance in chances.items():
        starts = rng.beta(2 * chance, 2 * (1 - chance), size=seeds)
        games += [Game(a, b, float(rng.random() < start), k) for k, start in enumerate(starts) for _ in range(2)]
    return games


CHANCES = {  # of three pairs in three games, on which no single order of strength agrees
    "search": {("a", "b"): 0.7, ("a", "c"): 0.9, ("b", "c"): 0.8},
    "mix": {("a", "b"): 0.5, ("a", "c"): 0.5, ("b", "c"): 0.5},
    "bluff": {("a", "b"): 0.3, ("a", "c"): 0.6, ("b", "c"): 0.7},
}


def test_a_rating_over_games_is_choixs_of_their_means_however_many_were_played():
    rng = np.random.default_rng(5)
    games = {name: played(rng, own, 50 if name == "mix" else 10) for name, own in CHANCES.items()}
    mean = sum(map(len, games.values())) / 3
    table = np.zeros((3, 3))
    for own in games.values():
        for a, b, result, *_ in own:
            places = "abc".index(a), "abc".index(b)
            table[places] += result * mean / len(own)
            table[places[::-1]] += (1 - result) * mean / len(own)
    expected = choix.ilsr_pairwise_dense(table, alpha=0.1, tol=1e-10) * 400 / np.log(10)
    found = {one.agent: one.rating.value for one in over_games(games)}
    assert [found[name] for name in "abc"] == pytest.approx(list(expected - expected.mean()), abs=1e-3)
    assert over_games({"search": games["search"]}) == bradley_terry(games["search"])


@pytest.mark.slow
def test_the_intervals_of_a_rating_over_games_cover_what_many_starts_would_say():
    rng, held = np.random.default_rng(6), []
    points = np.zeros((3, 3))
    for own in CHANCES.values():
        for (a, b), chance in own.items():
            points["abc".index(a), "abc".index(b)] += 1000 * chance
            points["abc".index(b), "abc".index(a)] += 1000 * (1 - chance)
    truth = strengths_of_many(points[None], tolerance=1e-8)[0]
    for _ in range(50):
        ratings = {
            one.agent: one.rating for one in over_games({name: played(rng, own, 15) for name, own in CHANCES.items()})
        }
        held += [ratings[name].low <= value <= ratings[name].high for name, value in zip("abc", truth, strict=True)]
    assert np.mean(held) > 0.9
