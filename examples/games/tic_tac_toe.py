"""Tic-tac-toe as a text game: two players who take turns, with exact chances, so that solvers can play it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import textgames

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class Board(NamedTuple):
    cells: str = "." * 9  # row by row from the top
    turn: int = 0


def winner(cells: str) -> str:
    return next((cells[a] for a, b, c in LINES if cells[a] != "." and cells[a] == cells[b] == cells[c]), "")


class TicTacToe(textgames.TSMG[Board]):
    players = ("player_0", "player_1")
    actions = tuple("123456789")

    def initial_state(self, rng: np.random.Generator) -> Board:
        return Board()

    def to_move(self, state: Board) -> tuple[str, ...]:
        return (self.players[state.turn],)

    def legal_actions(self, state: Board, player: str) -> tuple[str, ...]:
        return tuple(name for name, mark in zip(self.actions, state.cells, strict=True) if mark == ".")

    def transition(
        self, state: Board, joint_action: Mapping[str, str], rng: Any
    ) -> tuple[Board, dict[str, float], bool]:
        me, other = self.players[state.turn], self.players[1 - state.turn]
        action = joint_action.get(me)
        if action not in self.legal_actions(state, me):
            raise ValueError(f"{me} can't play {action!r}; free cells: {', '.join(self.legal_actions(state, me))}")
        cell = int(action) - 1
        cells = state.cells[:cell] + "XO"[state.turn] + state.cells[cell + 1 :]
        won = bool(winner(cells))
        return Board(cells, 1 - state.turn), {me: float(won), other: -float(won)}, won or "." not in cells

    def outcomes(self, state: Board, joint_action: Mapping[str, str]) -> list[Any]:
        return [(1.0, *self.transition(state, joint_action, None))]

    def board(self, state: Board) -> tuple[str, ...]:
        return state.cells[:3], state.cells[3:6], state.cells[6:]

    def observe(self, state: Board, player: str) -> str:
        return (
            "You are "
            + "XO"[self.players.index(player)]
            + ".\n"
            + "\n".join(" ".join(row) for row in self.board(state))
        )

    def instructions(self, player: str) -> str:
        return "Tic-tac-toe: three in a row win. Name a free cell; rows from the top are 1 2 3, 4 5 6 and 7 8 9."


textgames.register("ExampleTicTacToe-v0", TicTacToe, max_steps=9, opponents="random")
