"""A player that is told other payoffs than the game pays: ``with_payoffs(AGENT)``."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from agents import Around, Deciding, Policy, Question, TurnRequest
from textgames import TSMG

_CELL = re.compile(r"(\w+)\s*,\s*(\w+)\s*:\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*(?:;|$)")
LINE = re.compile(r"^- (\w+) against (\w+): you get (\S+), the other gets (\S+)$", re.MULTILINE)
"""A cell in the rules of a matrix game."""


def payoffs_in(text: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return ``{(own action, other's): (own payoff, other's)}`` of ``stag, hare: 0, 1; ...``; an equal cell's last."""
    return {(mine, his): (float(own), float(other)) for mine, his, own, other in _CELL.findall(text)}


class WithPayoffs(Around):
    """A player whose rules of a matrix game have the cells of ``payoffs`` in place of the game's own.

    It is GTAlign's change of payoffs at inference (arXiv 2510.08872): a player that reasons by what it reads aims at
    another outcome, without training. The game still pays by its own table, and each seat reads its own payoff first.

    Raises:
        ValueError: ``payoffs`` with no cell, or with something else, or a game whose rules have no such cell.
    """

    def __init__(self, player: Policy, *, payoffs: str = "") -> None:
        self.cells = payoffs_in(payoffs)
        if not self.cells or _CELL.sub("", payoffs).strip():
            raise ValueError(
                f"payoffs is {payoffs!r}; accepted are cells, OWN ACTION, OTHER'S: OWN PAYOFF, OTHER'S, and semicolons "
                "between them: payoffs = 'defect, cooperate: 2, 0; defect, defect: 0, 0'"
            )
        super().__init__("with_payoffs", player)
        self.payoffs = payoffs

    @property
    def settings(self) -> dict[str, Any]:
        return {"payoffs": self.payoffs}

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose rules lack a cell."""
        super().check_game(game)
        start = game.initial_state(np.random.default_rng(0))
        rules = game.instructions(game.to_move(start)[0])
        if lacking := self.cells.keys() - {found.groups()[:2] for found in LINE.finditer(rules)}:
            raise ValueError(
                f"payoffs has a cell {', '.join(min(lacking))}, and the rules of {type(game).__name__} have none; "
                "accepted: the pairs of actions of a matrix game, such as prisoners-dilemma"
            )

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the player under the changed rules."""
        told = LINE.sub(self._line, request.instructions)
        (turn,) = yield [Question(replace(request, instructions=told))]
        return turn

    def _line(self, found: re.Match[str]) -> str:
        mine, his = found.groups()[:2]
        if (mine, his) not in self.cells:
            return found[0]
        own, other = self.cells[mine, his]
        return f"- {mine} against {his}: you get {own:g}, the other gets {other:g}"
