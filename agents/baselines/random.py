"""The player that every other one has to beat: any legal action, with equal chances."""

import hashlib

import numpy as np

from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import game_of_observation
from agents.turn import TurnRequest


def drawn(*noise: object) -> int:
    """Draw a number below 2^64; building a generator would take twenty times as long."""
    return int.from_bytes(hashlib.blake2b(repr(noise).encode(), digest_size=8).digest(), "big")


class RandomPlayer(ScriptedPlayer):
    """Picks uniformly from the legal actions; the draw comes from the request's seed and ``seed``."""

    name = "random"

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
