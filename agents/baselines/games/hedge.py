"""The player of repeated matrix games: Hedge, and following the leader."""

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer, YardstickPlayer
from agents.turn import TurnRequest
from textgames.social.matrix_game import MatrixGame
from textgames.social.matrix_game.game import BestResponseYardstick
from textgames.solving.regret import hedge, hedge_rate


class MatrixGamePlayer(SearchPlayer):
    """``planner`` is Hedge, ``greedy`` takes the action that would have cost least so far.

    Hedge's expected regret is at most ``range * sqrt(T ln d / 2)``, whatever an opponent plays. It doesn't cooperate.
    """

    method = "Hedge"
    _game: MatrixGame

    def losses(self, request: TurnRequest) -> list[float]:
        """Return the loss of every action so far, in the order of the actions."""
        seat, payoffs = self._game.players.index(request.player), self._game.payoffs
        history = self._game.read_observation(request.observation, request.player).history
        others = [pair[1 - seat] for pair in history]
        return [-sum(payoffs.of(seat, mine, other) for other in others) for mine in range(len(payoffs.actions))]

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Return minus each action's loss so far: the order of the leader's follower, and no forecast."""
        return {name: -loss for name, loss in zip(request.legal_actions, self.losses(request), strict=True)}

    def plan(self, request: TurnRequest) -> Choice:
        low, high = self._game.payoffs.span(self._game.players.index(request.player))
        rate = hedge_rate(len(self._game.actions), self._game.rounds, high - low)
        chances = hedge(self.losses(request), rate)
        drawn = int(np.random.default_rng(request.seed).choice(len(chances), p=chances))
        return Choice(request.legal_actions[drawn], f"I take it with probability {chances[drawn]:.2f}.")

    def greedy(self, request: TurnRequest) -> Choice:
        losses = self.losses(request)
        return Choice(request.legal_actions[losses.index(min(losses))], "It would have been the best so far.")


def matrix_game_player(game: MatrixGame) -> SearchPlayer:
    """Return the best response if the other player is a program, else Hedge."""
    return MatrixGamePlayer(game) if game.opponent is None else YardstickPlayer(game, BestResponseYardstick(game))
