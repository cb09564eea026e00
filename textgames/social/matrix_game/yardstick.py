"""The yardstick of repeated matrix games against a program: the best response."""

from collections.abc import Mapping

from textgames.rounds import at_most
from textgames.social.matrix_game.game import MatrixGame, MatrixState
from textgames.solving.fixed_policies import chances_of
from textgames.tsmg import Action, Player
from textgames.yardsticks import Yardstick


class BestResponseYardstick(Yardstick):
    """The values of play against the opponent inside; a ValueError in a game of two players."""

    method = "best response"

    def __init__(self, game: MatrixGame) -> None:
        if game.best_response is None:
            raise ValueError("there is no best response in a game of two players without knowing the other one")
        self._game, self._values = game, game.best_response
        self.kind = "optimal" if game.tells_opponent else "clairvoyant"  # else a model isn't told what is played here

    def values(self, state: MatrixState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = at_most(self._game.rounds - len(state.history), steps_left)
        values = self._values.action_values(state.memory, left) if left else (0.0,) * len(self._game.actions)
        return dict(zip(self._game.actions, values, strict=True))

    def blind_value(
        self, state: MatrixState, steps_left: int | None, player: Player, policy: Mapping[Action, float]
    ) -> float:
        shares = tuple(chances_of(policy, self._game.actions))
        return self._values.fixed_value(
            state.memory, at_most(self._game.rounds - len(state.history), steps_left), shares
        )
