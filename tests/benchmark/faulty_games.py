"""Games that break their contract while they are played, registered where this module is imported, and nowhere else."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import textgames


class Walk(textgames.TSMG[Any]):
    """Three steps; every other game here is this one with a method changed."""

    actions = ("stay", "go")

    def initial_state(self, rng: np.random.Generator) -> Any:
        return 0

    def transition(self, state: Any, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        return state + 1, {"player_0": 1.0}, state >= 2

    def observe(self, state: Any, player: str) -> Any:
        return f"At {state}."

    def instructions(self, player: str) -> str:
        return "Walk. Actions: stay, go."


class PaysNobody(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {}, state >= 2


class PaysNone(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": None}, state >= 2


class PaysText(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": "1"}, state >= 2


class PaysNaN(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": float("nan")}, state >= 2


class SaysNothing(Walk):
    def observe(self, state: Any, player: str) -> Any:
        return None if state else "At 0."


class NeverSpeaks(Walk):
    def observe(self, state: Any, player: str) -> Any:
        return None


class Raises(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        raise KeyError("oops")


class ListStates(Walk):
    """Played to its end, but no search can look a state up."""

    def initial_state(self, rng: np.random.Generator) -> Any:
        return [0]

    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return [state[0] + 1], {"player_0": 1.0}, state[0] >= 2


class PaysNumPy(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": np.float32(1)}, state >= 2


GAMES = (PaysNobody, PaysNone, PaysText, PaysNaN, SaysNothing, NeverSpeaks, Raises, ListStates, PaysNumPy)
for _game in GAMES:
    textgames.register(f"Faulty{_game.__name__}-v0", _game, max_steps=6)
