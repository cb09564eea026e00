"""Finite-horizon value iteration for any game of one player that tells its outcomes."""

from typing import Any

from textgames.solving.exact_solver import MAX_STATES, ExactSolver
from textgames.tsmg import TSMG


class ValueIteration(ExactSolver):
    """The exact values of optimal play in a game for one player: Bellman's backward induction.

    ``V_0 = 0`` and ``V_h(s) = max_a sum_s' P(s'|s, a) (r + V_{h-1}(s'))``, over the states within reach of the one that
    is asked about; without a limit of steps until the values settle. In a game that hides part of its state these are
    the values of a player that sees all of it. A ValueError for several players, or without outcomes.
    """

    method = "value iteration"

    def __init__(self, game: TSMG[Any], *, max_states: int = MAX_STATES) -> None:
        if len(game.players) != 1:
            raise ValueError(f"value iteration is for one player, {type(game).__name__} has {len(game.players)}")
        if not game.has_outcomes:
            name = type(game).__name__
            raise ValueError(f"value iteration needs {name}.outcomes(state, joint_action), which {name} doesn't have")
        super().__init__(game, max_states=max_states)
        self.kind = "clairvoyant" if game.hidden_information else "optimal"
