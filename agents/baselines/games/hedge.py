"""Players of repeated games that learn from what every action would have paid: Hedge, and following the leader."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer, YardstickPlayer
from agents.turn import TurnRequest
from textgames.social.matrix_game import MatrixGame
from textgames.social.matrix_game.yardstick import BestResponseYardstick
from textgames.solving.regret import hedge, hedge_rate


class LeaderPlayer(SearchPlayer):
    """``planner`` is Hedge, which draws its action; ``greedy`` takes the action that would have cost least so far.

    Against losses that anybody may choose there is no best play, and Hedge is the named reference: whatever comes, its
    expected regret is at most ``range * sqrt(T ln d / 2)``.
    """

    method = "Hedge"

    @abstractmethod
    def losses(self, request: TurnRequest) -> Sequence[float]:
        """Return what every action would have cost so far, in the order of the actions."""

    @abstractmethod
    def rate(self, request: TurnRequest) -> float:
        """Return the learning rate of Hedge in this game."""

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Minus each action's loss so far: an order of the actions as the leader's follower sees it, no forecast."""
        return {name: -loss for name, loss in zip(request.legal_actions, self.losses(request), strict=True)}

    def plan(self, request: TurnRequest) -> Choice:
        chances = hedge(self.losses(request), self.rate(request))
        drawn = int(np.random.default_rng(request.seed).choice(len(chances), p=chances))
        return Choice(request.legal_actions[drawn], f"I take it with probability {chances[drawn]:.2f}.")

    def greedy(self, request: TurnRequest) -> Choice:
        losses = list(self.losses(request))
        return Choice(request.legal_actions[losses.index(min(losses))], "It would have been the best so far.")


class MatrixGamePlayer(LeaderPlayer):
    """The player of a :class:`~textgames.social.matrix_game.MatrixGame` of two, in either seat.

    It takes what the other has played so far as given, so it doesn't cooperate for what may come of it.
    """

    def __init__(self, game: MatrixGame) -> None:
        self._game = game

    def losses(self, request: TurnRequest) -> list[float]:
        seat, payoffs = self._game.players.index(request.player), self._game.payoffs
        history = self._game.read_observation(request.observation, request.player).history
        others = [pair[1 - seat] for pair in history]
        return [-sum(payoffs.of(seat, mine, other) for other in others) for mine in range(len(payoffs.actions))]

    def rate(self, request: TurnRequest) -> float:
        low, high = self._game.payoffs.span(self._game.players.index(request.player))
        return hedge_rate(len(self._game.actions), self._game.rounds, high - low)


def matrix_game_player(game: MatrixGame) -> SearchPlayer:
    """Return the best response where the other player is a program, else Hedge."""
    return MatrixGamePlayer(game) if game.opponent is None else YardstickPlayer(game, BestResponseYardstick(game))
