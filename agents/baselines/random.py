"""The player that every other one has to beat: any legal action, with equal chances."""

import hashlib

import numpy as np

from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import game_of_observation
from agents.turn import TurnRequest


class RandomPlayer(ScriptedPlayer):
    """Picks uniformly from the legal actions; the draw comes from the request's seed alone.

    With another ``seed`` it is another random player, for repeated plays of the same episodes.
    """

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def choose(self, request: TurnRequest) -> Choice:
        """Return a legal action; a ValueError for the bare observation of a game that isn't known here."""
        # a hash instead of a generator: building a generator takes twenty times as long as the draw
        noise = repr((self.seed, request.seed or request.observation)).encode()
        draw = int.from_bytes(hashlib.blake2b(noise, digest_size=8).digest(), "big")
        if request.sample_action is not None and not request.legal_actions:
            action = request.sample_action(np.random.default_rng(draw))
            return Choice(action, "Any action that the rules allow is as good as another to me.")
        actions = request.legal_actions or (request.game or game_of_observation(request.observation)).actions
        return Choice(actions[draw * len(actions) >> 64], "Any legal action is as good as another to me.")

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        """Equal chances, if the actions are listed."""
        legal = request.legal_actions
        return {action: 1 / len(legal) for action in legal} if legal else None
