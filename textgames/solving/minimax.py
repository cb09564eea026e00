"""Exact minimax for any zero-sum game of two players who take turns and hide nothing."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from textgames.solving.exact_solver import ExactSolver
from textgames.tsmg import TSMG, Action, Outcome, Player


class Minimax(ExactSolver):
    """The exact values of a game of two players with opposed interests when both play as well as possible.

    By backward induction over all that can be reached from the position that is asked about; outcomes of chance are
    averaged (expectiminimax), and a game that lists none is asked for its transitions. A ValueError if there aren't two
    players, or, when it is asked for values, both move at once, rewards don't sum to 0, or the game draws from its
    generator without outcomes.
    """

    method = "minimax"

    def __init__(self, game: TSMG[Any], *, canonical: Callable[[Any], Hashable] | None = None) -> None:
        if len(game.players) != 2:
            raise ValueError(f"minimax is for two players, {type(game).__name__} has {len(game.players)}")
        super().__init__(game, canonical=canonical)
        self.kind = "clairvoyant" if game.hidden_information else "optimal"

    def _outcomes(self, state: Any, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[Any]]:
        if self._game.has_outcomes:
            found = self._game.outcomes(state, joint_action)
        else:
            no_chance: Any = _NoChance(type(self._game).__name__)
            found = [(1.0, *self._game.transition(state, joint_action, no_chance))]
        first, second = self._game.players
        for _, _, rewards, _ in found:
            if abs(rewards[first] + rewards[second]) > 1e-9:
                raise ValueError(f"minimax is for games whose rewards sum to 0, got {dict(rewards)}")
        return found


class _NoChance:
    """Stands in for the generator of a game that is taken to draw nothing, and raises if it does."""

    def __init__(self, game: str) -> None:
        self._game = game

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"{self._game} draws from its generator, so minimax needs its outcomes(state, joint_action)")
