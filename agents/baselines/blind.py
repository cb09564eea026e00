"""The best player that doesn't read, which has a score of 0."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from agents.baselines.random import drawn
from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import game_of_observation
from agents.turn import TurnRequest
from textgames.solving.blind import BlindPlay, blind_play_of, chances_of
from textgames.tsmg import TSMG


class BlindPlayer(ScriptedPlayer):
    """Draws every action from one distribution, whatever it is shown: see :mod:`textgames.solving.blind`.

    In a game of several players, which has no best blind play, it picks uniformly from the legal actions.
    """

    name = "blind"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        # by game and by horizon, since one game object may serve scenarios that are played for longer or shorter
        self._plays: WeakKeyDictionary[TSMG[Any], dict[int | None, BlindPlay | None]] = WeakKeyDictionary()

    def choose(self, request: TurnRequest) -> Choice:
        """Draw an action of the distribution; a ValueError for the bare observation of an unknown game."""
        play = self._play(request)
        policy = {} if play is None else play.policy
        reason = f"I don't read: {'uniform' if play is None else play.text}."
        draw = drawn(self.name, self.seed, request.seed or request.observation)
        # where actions can't be listed, those that the distribution names are what may be said
        names = request.legal_actions or tuple(policy)
        if not names and request.sample_action is not None:
            return Choice(request.sample_action(np.random.default_rng(draw)), reason)
        names = names or (request.game or game_of_observation(request.observation)).actions
        place = int(np.searchsorted(np.cumsum(chances_of(policy, names)), draw / 2**64, side="right"))
        return Choice(names[min(place, len(names) - 1)], reason)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        play, legal = self._play(request), request.legal_actions
        return dict(zip(legal, chances_of({} if play is None else play.policy, legal), strict=True)) if legal else None

    def _play(self, request: TurnRequest) -> BlindPlay | None:
        """Return the play of the request's game, for the longest horizon that was met: an episode's first request has
        it."""
        game = request.game
        if game is None:
            return None
        plays = self._plays.setdefault(game, {})
        left = request.steps_left
        longer = [known for known in plays if known is not None and left is not None and known >= left]
        horizon = max(longer, default=left)
        if horizon not in plays:
            plays[horizon] = blind_play_of(game, horizon)
        return plays[horizon]
