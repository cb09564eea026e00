"""What tic-tac-toe, nim and Connect Four share: turns, wins, texts and refusals. Each has a file of its own besides."""

from typing import Any

import numpy as np
import pytest

from textgames.scenarios import SCENARIOS

PLAYERS = ("player_0", "player_1")

NAMES = ("tic-tac-toe", "nim", "connect-four-small")


def playouts(game: Any, count: int) -> list[list[tuple[Any, str, Any, dict[str, float], bool]]]:
    """Random games, each a list of (state, action, next state, rewards, over)."""
    played = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        state, over, rounds = game.initial_state(rng), False, []
        while not over:
            (mover,) = game.to_move(state)
            action = game.sample_action(state, mover, rng)
            after, rewards, over = game.transition(state, {mover: action}, rng)
            rounds.append((state, action, after, rewards, over))
            state = after
        played.append(rounds)
    return played


@pytest.mark.parametrize("name", NAMES)
def test_games_are_played_in_turns_to_their_end(name):
    game, ends = SCENARIOS[name].game(), set()
    for rounds in playouts(game, 60):
        assert [game.to_move(state)[0] for state, *_ in rounds] == [PLAYERS[i % 2] for i in range(len(rounds))]
        for state, action, after, rewards, over in rounds:
            (mover,) = game.to_move(state)
            assert game.outcomes(state, {mover: action}) == [(1.0, after, rewards, over)]
            assert over == (game.to_move(after) == ())
            assert rewards["player_0"] + rewards["player_1"] == 0.0
            assert over or not any(rewards.values())
        paid = rounds[-1][3]["player_0"]
        ends.add(paid)
        final = rounds[-1][2]
        assert [game.succeeded(final, player) for player in PLAYERS] == [paid == 1.0, paid == -1.0]
        assert game.metrics(final, "player_0") == {"won": float(paid == 1.0), "drawn": float(paid == 0.0)}
        assert len(rounds) <= SCENARIOS[name].horizon
    assert ends == ({1.0, -1.0} if name == "nim" else {1.0, -1.0, 0.0})


def test_what_ended_a_game_is_told_of_who_did_it():
    told = set()
    for name in NAMES:
        game = SCENARIOS[name].game()
        for rounds in playouts(game, 30):
            state, action, after, _, _ = rounds[-1]
            (mover,) = game.to_move(state)
            (other,) = set(PLAYERS) - {mover}
            told.add(game.what_happened(state, {mover: action}, after, mover).partition("; ")[2])
            assert game.what_happened(state, {mover: action}, after, other) == ""
            assert game.describe(after)
    assert told == {"", "three in a row", "connected 4", "a draw"}
