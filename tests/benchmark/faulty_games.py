"""Games that break their contract while they are played, registered where this module is imported, and nowhere else."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import textgames


class Walk(textgames.TSMG[Any]):
    """Three steps; every other game here is this one with other rewards or another method."""

    actions = ("stay", "go")
    rewards: Mapping[str, Any] = {"player_0": 1.0}

    def initial_state(self, rng: np.random.Generator) -> Any:
        return 0

    def transition(self, state: Any, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        return state + 1, self.rewards, state >= 2

    def observe(self, state: Any, player: str) -> Any:
        return f"At {state}."

    def instructions(self, player: str) -> str:
        return "Walk. Actions: stay, go."


class SaysNothing(Walk):
    def observe(self, state: Any, player: str) -> Any:
        return None if state else "At 0."


class Raises(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        raise KeyError("oops")


class ListStates(Walk):
    """Played to its end, but no search can look a state up."""

    def initial_state(self, rng: np.random.Generator) -> Any:
        return [0]

    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return [state[0] + 1], self.rewards, state[0] >= 2


REWARDS: dict[str, dict[str, Any]] = {
    "PaysNobody": {},
    "PaysText": {"player_0": "1"},
    "PaysNaN": {"player_0": float("nan")},
    "PaysNumPy": {"player_0": np.float32(1)},
}
GAMES = [SaysNothing, Raises, ListStates]
GAMES += [type(name, (Walk,), {"rewards": rewards, "__module__": __name__}) for name, rewards in REWARDS.items()]
for _game in GAMES:
    globals()[_game.__name__] = _game
    textgames.register(f"Faulty{_game.__name__}-v0", _game, max_steps=6)
