"""The players that don't read, which every other one has to beat: uniform play, and the best one, of score 0."""

import hashlib
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import game_of_observation
from agents.turn import TurnRequest
from textgames.solving.blind import BlindPlay, blind_play_of, chances_of
from textgames.tsmg import TSMG


def drawn(*noise: object) -> int:
    """Draw a number below 2^64; building a generator would take twenty times as long."""
    return int.from_bytes(hashlib.blake2b(repr(noise).encode(), digest_size=8).digest(), "big")


class RandomPlayer(ScriptedPlayer):
    """Picks uniformly from the legal actions; the draw comes from the request's seed and ``seed``."""

    name = "random"
    takes_images = True  # it reads nothing

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def choose(self, request: TurnRequest) -> Choice:
        """Draw a legal action; a ValueError for the bare observation of an unknown game."""
        draw = drawn(self.seed, request.seed or request.observation)
        if request.sample_action is not None and not request.legal_actions:
            action = request.sample_action(np.random.default_rng(draw))
            return Choice(action, "Any action that the rules allow is as good as another to me.")
        actions = request.legal_actions or (request.game or game_of_observation(request.observation)).actions
        return Choice(actions[draw * len(actions) >> 64], "Any legal action is as good as another to me.")

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        legal = request.legal_actions
        return {action: 1 / len(legal) for action in legal} if legal else None


class BlindPlayer(ScriptedPlayer):
    """Draws every action from one distribution, whatever it is shown: see :mod:`textgames.solving.blind`.

    In a game of several players, which has no best blind play, it picks uniformly from the legal actions.
    """

    name = "blind"
    takes_images = True

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
        # if actions can't be listed, those that the distribution names are what may be said
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
