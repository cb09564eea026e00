"""Frozen Lake, blackjack, cliff walking and the taxi against Gymnasium's: tables, starts, maps, and exact values."""

import copy
import itertools
import pickle
from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text import blackjack as gymnasiums
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.frozen_lake import is_valid as gymnasium_is_valid
from hypothesis import given, settings
from hypothesis import strategies as st

from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.frozen_lake.rules import ACTIONS, draw_lake, is_solvable
from textgames.frozen_lake.text import TextStyle, observation, read_observation
from textgames.planning.blackjack import Blackjack, BlackjackState, Hand
from textgames.planning.cliff_walking import GOAL, CliffWalking
from textgames.planning.taxi import RIDING, Taxi, TaxiState
from textgames.solving.blind import blind_value
from textgames.solving.value_iteration import ValueIteration

ME = "player_0"


def table_row(game: Any, state: Any, action: str, number: Any) -> list[tuple[float, int, float, bool]]:
    """The outcomes of an action as a row of Gymnasium's table, its states numbered by ``number``."""
    listed = game.outcomes(state, {ME: action})
    return [(chance, number(after), rewards[ME], over) for chance, after, rewards, over in listed]


# ---------------------------------------------------------------- Frozen Lake


def lakes(count: int, *, sizes: tuple[int, ...] = (2, 3, 4, 5, 8)) -> list[Lake]:
    rng = np.random.default_rng(0)
    return [draw_lake(sizes[i % len(sizes)], (0.6, 0.8, 0.95)[i % 3], rng) for i in range(count)]


@pytest.mark.parametrize(
    ("is_slippery", "success_rate"), [(False, 1 / 3), (True, 1 / 3), (True, 0.8), (True, 0.0), (True, 1.0)]
)
def test_lakes_have_gymnasiums_table(is_slippery, success_rate):
    others = [Lake.from_desc(desc) for desc in (("SFFG",), ("SF", "FF", "FG"), ("SHF", "FFG"), ("SFS", "GHF"))]
    game = FrozenLake(is_slippery=is_slippery, success_rate=success_rate)
    for lake in (*lakes(60), *others):
        desc = [lake.tiles[start : start + lake.ncol] for start in range(0, len(lake.tiles), lake.ncol)]
        table = FrozenLakeEnv(desc=desc, is_slippery=is_slippery, success_rate=success_rate).P
        for cell, (action, name) in itertools.product(range(len(lake.tiles)), enumerate(ACTIONS)):
            ours = table_row(game, FrozenLakeState(lake, cell), name, lambda state: state.position)
            assert ours == [each for each in table[cell][action] if each[0]]


@given(st.integers(2, 9), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_solvability_agrees_with_gymnasiums_search(size, random):
    """On square maps, as its search knows no others."""
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    frozen = rng.random((size, size)) < rng.uniform(0.3, 0.9)
    board = np.where(frozen, "F", "H")
    board[0, 0], board[-1, -1] = "S", "G"
    safe = sum(1 << i for i, tile in enumerate(board.ravel()) if tile != "H")
    assert is_solvable(safe, size) == gymnasium_is_valid(board.tolist(), size)


@pytest.mark.parametrize(
    "style", [{"grid": False}, {"coordinates": False}, {"axes": True}, {"relative": True, "grid": False}]
)
def test_an_observation_tells_the_whole_state(style):
    for lake in lakes(60, sizes=(2, 4, 11)):
        for cell in range(0, len(lake.tiles), 3):
            if style.get("coordinates", True) or lake.tiles[cell] not in "HG":  # a mark hides the tile under it
                state = FrozenLakeState(lake, cell)
                text = observation(state, TextStyle(**style))
                read = read_observation(text)
                assert (read.position, observation(read, TextStyle(**style))) == (cell, text)
                assert read.lake.tiles.replace("S", "F") == lake.tiles.replace("S", "F")
    with pytest.raises(ValueError, match="not a Frozen Lake observation"):
        read_observation("Apples: (1, 2)")


def test_a_lake_is_an_immutable_value():
    lake = Lake.from_desc(["SF", "FG"])
    lake.memo["anything"] = 1
    assert lake == Lake(2, 2, "SFFG") == pickle.loads(pickle.dumps(lake)) != Lake(1, 4, "SFFG")
    assert hash(lake) == hash(Lake(2, 2, "SFFG"))
    assert copy.deepcopy(lake) is lake
    for change in (lambda: setattr(lake, "tiles", "SGGG"), lambda: delattr(lake, "tiles")):
        with pytest.raises(AttributeError, match=r"cannot (assign to|delete) field"):
            change()


@pytest.mark.parametrize(
    ("start", "action", "arrived", "told"),
    [
        (7, "up", 8, "slipped right instead of up; reached the goal"),
        (3, "down", 3, "slipped left instead of down; bumped into the edge"),
        (5, "right", 2, "slipped up instead of right; fell into a hole"),
        (2, "left", 2, ""),  # it was in the hole already
        (0, "left", 0, "bumped into the edge"),  # as intended, or up: it can't be told from the cell
    ],
)
def test_slips_on_ice_are_told(start, action, arrived, told):
    lake = Lake.from_desc(["SFH", "FFF", "FFG"])
    before, after = FrozenLakeState(lake, start), FrozenLakeState(lake, arrived)
    assert FrozenLake(is_slippery=True).what_happened(before, {ME: action}, after, ME) == told


def test_a_direction_that_is_never_taken_is_never_told():
    corner, row = FrozenLakeState(Lake.from_desc(["SF", "FG"]), 0), FrozenLakeState(Lake.from_desc(["SFG"]), 1)
    for chance, at, told in ((0.0, corner, "up"), (1 / 3, row, "up or down")):
        game = FrozenLake(is_slippery=True, success_rate=chance)
        assert game.what_happened(at, {ME: "left"}, at, ME) == f"slipped {told} instead of left; bumped into the edge"


# ---------------------------------------------------------------- blackjack


def test_hands_count_and_deals_come_as_gymnasiums():
    for cards in itertools.chain.from_iterable(itertools.product(range(1, 11), repeat=count) for count in (2, 3, 4)):
        hand = Hand(0)
        for card in cards:
            hand = hand.with_card(card)
        assert hand == (gymnasiums.sum_hand(list(cards)), bool(gymnasiums.usable_ace(list(cards))))
    expected: Counter[tuple[int, bool, int, bool]] = Counter()
    for first, second, showing in itertools.product(gymnasiums.deck, repeat=3):
        held = [first, second]
        key = (gymnasiums.sum_hand(held), bool(gymnasiums.usable_ace(held)), showing, gymnasiums.is_natural(held))
        expected[key] += 1
    found = {(*s.hand, s.showing, s.natural): p * 13**3 for p, s in Blackjack().initial_outcomes()}
    assert found == pytest.approx(dict(expected))


@pytest.mark.parametrize(
    ("settings", "optimal", "uniform"),
    [({"sab": True}, -0.04311, -0.3942), ({}, -0.04656, -0.3959), ({"natural": True}, -0.02573, -0.3855)],
)
def test_the_values_of_a_deal(settings, optimal, uniform):
    game = Blackjack(**settings)
    yardstick = ValueIteration(game)
    starts = game.initial_outcomes()
    for horizon in (20, None):  # twenty decisions are the most that a deal can have
        assert sum(p * yardstick.value(s, horizon, ME) for p, s in starts) == pytest.approx(optimal, abs=1e-5)
    assert sum(p * blind_value(game, s, 20, ME, {}) for p, s in starts) == pytest.approx(uniform, abs=5e-5)


def test_the_optimal_policy_of_blackjack_is_the_books():
    """Figure 5.2 of Sutton and Barto: without a usable ace stick at 17, from 13 against 2 to 6, from 12 against 4 to 6;
    with one, stick at 18, and at 19 against a dealer's 9, 10 or ace."""
    yardstick = ValueIteration(Blackjack(sab=True))

    def first_stick(ace: bool, showing: int) -> int:
        for total in range(12, 22):
            values = yardstick.values(BlackjackState(Hand(total, ace), False, showing), 20, ME)
            if values["stick"] >= values["hit"]:
                return total
        raise AssertionError("it never sticks")

    for showing in range(1, 11):
        assert first_stick(False, showing) == (12 if showing in (4, 5, 6) else 13 if showing in (2, 3) else 17)
        assert first_stick(True, showing) == (19 if showing in (9, 10, 1) else 18)


# ---------------------------------------------------------------- cliff walking


@pytest.mark.parametrize("is_slippery", [False, True])
def test_cliffs_have_gymnasiums_table(is_slippery):
    game = CliffWalking(is_slippery=is_slippery)
    table = gym.make("CliffWalking-v1", is_slippery=is_slippery).unwrapped.P
    assert len(table) == 48
    for cell, (action, name) in itertools.product(range(GOAL), enumerate(game.actions)):
        assert table_row(game, cell, name, int) == table[cell][action]


# ---------------------------------------------------------------- the taxi


def numbered(state: TaxiState) -> int:
    """The state's number in Gymnasium."""
    return (state.taxi * 5 + state.passenger) * 4 + state.destination


@pytest.mark.parametrize("settings", [{}, {"is_rainy": True}, {"is_rainy": True, "rainy_probability": 0.5}])
def test_taxis_have_gymnasiums_table_and_starts(settings):
    game, theirs = Taxi(**settings), gym.make("Taxi-v4", **settings).unwrapped
    assert len(theirs.P) == 500
    for taxi, passenger, destination in itertools.product(range(25), range(5), range(4)):
        state = TaxiState(taxi, passenger, destination)
        if passenger != destination:  # else the game is over, and goes on in Gymnasium
            for action, name in enumerate(game.actions):
                assert table_row(game, state, name, numbered) == theirs.P[numbered(state)][action]
    found = np.zeros(500)
    for chance, state in game.initial_outcomes():
        found[numbered(state)] += chance
    assert found == pytest.approx(theirs.initial_state_distrib)


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
    assert game.outcomes(riding, {ME: "north"}) == [(1.0, riding, {ME: -1.0}, False)]
    for chance, after, _, _ in game.outcomes(riding, {ME: "south"}):
        assert not after.may_change
        assert abs(counts[after.destination] / episodes - chance) < 5 * (chance * (1 - chance) / episodes) ** 0.5


def test_one_ride():
    game, rng = Taxi(), np.random.default_rng(0)
    state, told, paid = TaxiState(5, 0, 2), [], []  # below red, the passenger there, wants to go to yellow
    for action in [
        "pickup",
        "north",
        "north",
        "pickup",
        "dropoff",
        "pickup",
        "south",
        "dropoff",
        "south",
        "south",
        "south",
        "dropoff",
    ]:
        after, rewards, _ = game.transition(state, {ME: action}, rng)
        told.append(game.what_happened(state, {ME: action}, after, ME))
        paid.append(rewards[ME])
        state = after
    assert paid == [-10, -1, -1, -1, -1, -1, -1, -10, -1, -1, -1, 20]
    assert "; ".join(words for words in told if words) == (
        "can't pickup here; blocked; picked the passenger up; let the passenger out at the wrong stop; "
        "picked the passenger up; can't dropoff here; delivered the passenger"
    )
