"""Full-information online learning: losses, texts, values, and its reference players."""

import numpy as np
import pytest

from agents.baselines.games.online_learning import OnlineLearningPlayer
from agents.baselines.search import find_search_player
from agents.turn import TurnRequest
from textgames.exploration.online_learning import PATTERNS, OnlineLearning, OnlineState, read_losses

ME = "player_0"
STATE = OnlineState(((3.0, 1.0), (0.0, 10.0), (5.0, 4.0)))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_losses_are_numbers_of_one_decimal_drawn_before_the_first_round(pattern):
    game = OnlineLearning(num_actions=3, rounds=40, pattern=pattern)
    starts = [game.initial_state(np.random.default_rng(seed)) for seed in range(20)]
    losses = np.array([start.losses for start in starts])
    assert losses.shape == (20, 40, 3)
    assert losses.min() >= 0
    assert losses.max() <= 10
    assert np.array_equal(losses, losses.round(1))
    assert len({str(start) for start in starts}) == 20
    assert len({game.observe(start, ME) for start in starts}) == 1
    assert losses.mean(axis=(0, 1)) == pytest.approx(losses.mean(), abs=1.5)  # no action is better by its name


def test_patterns_are_what_they_are_called():
    rng = np.random.default_rng(0)
    lines = PATTERNS["trend"](25, 2, rng)
    rest = lines - np.polynomial.Polynomial.fit(np.arange(25), lines[:, 0], 1)(np.arange(25))[:, None]
    assert rest[:, 0].std() == pytest.approx(0.5, abs=0.2)
    wave = PATTERNS["sine"](25, 2, rng)
    assert np.abs(wave.mean(axis=0) - 5).max() < 1.5
    assert np.ptp(wave, axis=0).min() > 6
    hit = PATTERNS["adversarial"](25, 2, rng)
    leaders = np.cumsum(hit, axis=0)[:-1].argmin(axis=1)
    assert (hit[1:].argmax(axis=1) == leaders).mean() > 0.9  # up to the first head start, whoever leads is hit


def test_a_round_costs_what_the_row_says():
    game, rng = OnlineLearning(rounds=3), np.random.default_rng(0)
    state, rewards = STATE, []
    for action in ("highway", "bridge", "highway"):
        listed = game.outcomes(state, {ME: action})
        state, paid, over = game.transition(state, {ME: action}, rng)
        assert listed == [(1.0, state, paid, over)]
        rewards.append(paid[ME])
    assert over
    assert rewards == [-3, -10, -5]
    # "bridge instead of highway" would have gained 3 on days 1 and 3, "highway instead of bridge" 10 on day 2
    regrets = {"external_regret": 10.0, "average_regret": pytest.approx(10 / 3), "swap_regret": 13.0}
    assert game.metrics(state, ME) == regrets
    assert game.transition(state, {ME: "bridge"}, rng) == (state, {ME: 0.0}, True)


def test_everything_played_is_shown_and_nothing_else():
    game = OnlineLearning(rounds=3)
    played = STATE._replace(chosen=(0, 1))
    assert game.observe(played, ME) == (
        "Day 1: highway 3.0, bridge 1.0; you took highway\n"
        "Day 2: highway 0.0, bridge 10.0; you took bridge\n"
        "Day 3 of 3. You have lost 13.0 minutes so far."
    )
    assert read_losses(game.observe(played, ME)) == [(3.0, 1.0), (0.0, 10.0)]
    other_future = played._replace(losses=(*played.losses[:2], (9.0, 9.0)))
    assert game.observe(other_future, ME) == game.observe(played, ME)
    with pytest.raises(ValueError, match="not an observation of online learning"):
        read_losses("Round 1 of 3.")


def ask(game: OnlineLearning, rows: tuple[tuple[float, ...], ...]) -> TurnRequest:
    state = OnlineState(rows + ((0.0,) * game.num_actions,) * 25, (0,) * len(rows))
    return TurnRequest(game.observe(state, ME), legal_actions=game.actions, game=game, steps_left=25 - len(rows))


def test_the_planner_forecasts_and_greedy_follows_the_leader():
    game = OnlineLearning(rounds=25)
    player = find_search_player(game)
    assert isinstance(player, OnlineLearningPlayer)
    assert (player.kind, player.method) == ("reference", "Bayesian mixture of the patterns")
    # before anything was seen, all cost the same
    assert player.values(ask(game, ())) == pytest.approx({"highway": -5.0, "bridge": -5.0})
    # steady losses: shrunk means, in the order of the sums
    steady = ask(game, ((3.0, 6.0), (7.0, 8.0), (2.0, 6.5), (5.0, 4.5), (2.5, 8.0)))
    values = player.values(steady)
    assert player.plan(steady).action == player.greedy(steady).action == "highway"
    assert values["highway"] == pytest.approx(-(19.5 + 5 * 1.92) / 6.92, abs=0.3)
    # two lines that cross: the highway has cost more so far, and will cost less
    trend = ask(game, tuple((9.0 - 0.6 * day, 1.0 + 0.5 * day) for day in range(9)))
    assert player.greedy(trend).action == "bridge"
    assert player.plan(trend).action == "highway"
    # whoever leads is hit
    hit = ask(game, ((9.0, 1.0), (0.5, 9.5), (9.2, 1.1), (0.3, 8.8), (8.9, 1.7)))
    assert player.greedy(hit).action == "bridge"
    assert player.plan(hit).action == "highway"
