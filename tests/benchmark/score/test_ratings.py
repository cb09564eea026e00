"""Bradley-Terry ratings: known strengths are found again, whoever sits first."""

import numpy as np
import pytest

from benchmark.score.ratings import Game, bradley_terry


def test_two_agents_have_the_ratings_that_their_record_says():
    games = [Game("a", "b", 1.0)] * 75 + [Game("a", "b", 0.0)] * 25
    best, worst = bradley_terry(games)
    assert (best.agent, worst.agent) == ("a", "b")
    # 3:1 is 400 * log10(3) = 190.8 points apart; the regularisation pulls them together a little
    assert best.rating.value - worst.rating.value == pytest.approx(190.8, abs=3)
    assert best.rating.value == pytest.approx(-worst.rating.value)
    assert (best.games, best.wins, best.losses, best.draws) == (100, 75, 25, 0)
    assert best.rating.low < best.rating.value < best.rating.high


def test_seats_dont_matter():
    games = [Game("a", "b", 1.0)] * 6 + [Game("a", "b", 0.0)] * 4
    turned = [Game(game.second, game.first, 1 - game.result) for game in games]
    assert bradley_terry(games)[0].rating.value == pytest.approx(bradley_terry(turned)[0].rating.value)


def test_a_draw_is_half_a_win_for_each():
    drawn = bradley_terry([Game("a", "b", 0.5)] * 20)
    assert [rating.rating.value for rating in drawn] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert [rating.draws for rating in drawn] == [20, 20]


def test_strengths_are_found_again():
    rng = np.random.default_rng(0)
    truth = {"a": 200.0, "b": 0.0, "c": -200.0}
    games = []
    for first in truth:
        for second in truth:
            if first != second:
                chance = 1 / (1 + 10 ** ((truth[second] - truth[first]) / 400))
                games += [Game(first, second, float(rng.random() < chance)) for _ in range(300)]
    ratings = {rating.agent: rating.rating for rating in bradley_terry(games)}
    for agent, value in truth.items():
        assert ratings[agent].low <= value <= ratings[agent].high


def test_equal_results_are_no_certainty():
    for rating in bradley_terry([Game("a", "b", 0.5)] * 20):
        assert rating.rating.low < -10 < 10 < rating.rating.high


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


def test_groups_that_never_met_are_on_scales_of_their_own():
    games = [Game("a", "b", 1.0), Game("a", "b", 0.0), Game("c", "d", 1.0), Game("d", "c", 0.5)] * 5
    ratings = {one.agent: one for one in bradley_terry(games)}
    assert ratings["a"].group == ratings["b"].group != ratings["c"].group == ratings["d"].group
    for pair in ("ab", "cd"):
        assert sum(ratings[name].rating.value for name in pair) == pytest.approx(0, abs=1e-6)


def test_a_circle_is_said():
    games = [Game(a, b, 1.0) for a, b in ("ab", "bc", "ca")] * 10
    assert {one.agent: one.in_cycle for one in bradley_terry(games)} == {"a": True, "b": True, "c": True}
    straight = [Game(a, b, result) for a, b in ("ab", "bc", "ac") for result in (1.0, 1.0, 0.0)]
    assert not any(one.in_cycle for one in bradley_terry(straight))


def test_a_single_game_has_no_interval():
    (first, second) = bradley_terry([Game("a", "b", 0.5)])
    assert first.rating[1:] == second.rating[1:] == (None, None)


def test_playing_only_oneself_rates_nobody():
    assert bradley_terry([Game("a", "a", 1.0)] * 5) == []
    assert bradley_terry([]) == []
