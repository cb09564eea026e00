"""The taxi against Gymnasium's tables and episodes, and its exact values."""

import itertools

import gymnasium as gym
import numpy as np
import pytest

from textgames.planning.taxi import ACTIONS, RIDING, Taxi, TaxiState
from textgames.solving.blind import blind_value
from textgames.solving.value_iteration import ValueIteration


def numbered(state: TaxiState) -> int:
    """The state's number in Gymnasium."""
    return (state.taxi * 5 + state.passenger) * 4 + state.destination


@pytest.mark.parametrize("settings", [{}, {"is_rainy": True}, {"is_rainy": True, "rainy_probability": 0.5}])
def test_outcomes_are_gymnasiums_table(settings):
    game, table = Taxi(**settings), gym.make("Taxi-v4", **settings).unwrapped.P
    assert len(table) == 500
    for taxi, passenger, destination in itertools.product(range(25), range(5), range(4)):
        state = TaxiState(taxi, passenger, destination)
        if passenger == destination:  # the game is over, and goes on in Gymnasium
            continue
        for action, name in enumerate(ACTIONS):
            told = [
                (chance, numbered(after), rewards["player_0"], over)
                for chance, after, rewards, over in game.outcomes(state, {"player_0": name})
            ]
            assert told == table[numbered(state)][action]


def test_starts_are_gymnasiums():
    expected = gym.make("Taxi-v4").unwrapped.initial_state_distrib
    found = np.zeros(500)
    for chance, state in Taxi().initial_outcomes():
        found[numbered(state)] += chance
    assert found == pytest.approx(expected)


def test_a_fickle_passenger_changes_its_mind_as_gymnasiums_does():
    """After the first move of a ride, the share of each destination in Gymnasium's episodes is the outcomes' chance."""
    env = gym.make("Taxi-v4", fickle_passenger=True).unwrapped
    game, episodes, red_to_blue = Taxi(fickle_passenger=True), 2000, (0 * 5 + 0) * 4 + 3
    counts = dict.fromkeys(range(4), 0)
    env.reset(seed=0)
    for _ in range(episodes):
        env.reset()
        env.s = red_to_blue
        env.step(4)
        env.step(1)  # north, where the edge is: no movement, so nothing changes yet
        assert env.decode(env.s)[3] == 3
        env.step(0)
        counts[env.decode(env.s)[3]] += 1
    riding = TaxiState(0, RIDING, 3, True)
    bumped = [(1.0, riding, {"player_0": -1.0}, False)]
    assert game.outcomes(riding, {"player_0": "north"}) == bumped
    for chance, after, _, _ in game.outcomes(riding, {"player_0": "south"}):
        assert not after.may_change
        assert abs(counts[after.destination] / episodes - chance) < 5 * (chance * (1 - chance) / episodes) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("horizon", "optimal", "uniform"), [(20, 7.93, -78.7835), (200, 7.93, -771.0910)])
def test_the_values_of_the_start(horizon, optimal, uniform):
    game = Taxi()
    yardstick = ValueIteration(game)
    starts = game.initial_outcomes()
    assert sum(p * yardstick.value(s, horizon, "player_0") for p, s in starts) == pytest.approx(optimal, abs=1e-9)
    values = sum(p * blind_value(game, s, horizon, "player_0", {}) for p, s in starts)
    assert values == pytest.approx(uniform, abs=1e-4)


def test_one_ride():
    game, rng = Taxi(), np.random.default_rng(0)
    state, told, paid = TaxiState(5, 0, 2), [], []  # below red, the passenger there, wants to go to yellow
    ride = "pickup north north pickup dropoff pickup south dropoff south south south dropoff"
    for action in ride.split():
        after, rewards, over = game.transition(state, {"player_0": action}, rng)
        told.append(game.what_happened(state, {"player_0": action}, after, "player_0"))
        paid.append(rewards["player_0"])
        state = after
    assert paid == [-10, -1, -1, -1, -1, -1, -1, -10, -1, -1, -1, 20]
    assert over
    assert "; ".join(words for words in told if words) == (
        "can't pickup here; blocked; picked the passenger up; let the passenger out at the wrong stop; "
        "picked the passenger up; can't dropoff here; delivered the passenger"
    )
