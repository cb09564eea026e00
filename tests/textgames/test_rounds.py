"""Rounds of play: each begins where the one before it ended, is counted, and there are no more than the limit."""

import numpy as np

from textgames.frozen_lake import FrozenLake
from textgames.rounds import rounds_of_play
from textgames.strategy.tic_tac_toe import TicTacToe


def test_rounds_are_counted_and_hang_together() -> None:
    game, rng = TicTacToe(), np.random.default_rng(3)
    start = game.initial_state(rng)
    rounds = list(rounds_of_play(game, start, None, rng))
    assert [each.played for each in rounds] == list(range(len(rounds)))
    assert [each.state for each in rounds] == [start, *[each.next_state for each in rounds[:-1]]]
    assert [each.over for each in rounds] == [False] * (len(rounds) - 1) + [True]
    for each in rounds:
        assert tuple(each.joint_action) == game.to_move(each.state)
        assert (each.next_state, each.rewards, each.over) == game.transition(each.state, each.joint_action, rng)


def test_the_limit_ends_what_would_go_on() -> None:
    game, rng = FrozenLake(size=4), np.random.default_rng(0)
    start = game.initial_state(rng)
    asked = []

    def against_the_wall(state: object, player: str) -> str:
        asked.append((state, player))
        return "left"

    rounds = list(rounds_of_play(game, start, 3, rng, against_the_wall))
    assert [each.played for each in rounds] == [0, 1, 2]
    assert asked == [(each.state, game.players[0]) for each in rounds]
    assert not list(rounds_of_play(game, start, 0, rng))
