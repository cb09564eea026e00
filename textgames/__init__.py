"""Text games for language models: text-mediated stochastic games (TSMG) for Gymnasium and PettingZoo.

Importing this package registers the ids::

    import gymnasium as gym, textgames
    env = gym.make("TextFrozenLake-v0")
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step("<action>right</action>")

Start reading at :mod:`textgames.tsmg`.
"""

from typing import TYPE_CHECKING, Any

import lazy_loader  # type: ignore[import-untyped]

from textgames.ladders import register_ladder
from textgames.names import did_you_mean
from textgames.registry import aec_env, game_of, parallel_env, register, registered_ids, settings_of
from textgames.rounds import rounds_of_play
from textgames.scenarios import SCENARIOS, SUITES, TRAINING_SEEDS, Scenario, known_scenario, why_unknown
from textgames.texts.actions import Unreadable, UnreadableReason, parse_action
from textgames.tsmg import TSMG, GameError, Outcome
from textgames.twins import has_twins, register_vocabulary, twin_of
from textgames.yardsticks import Yardstick, find_yardstick, register_yardstick

if TYPE_CHECKING:
    from textgames.open_spiel.game import OpenSpiel

__all__ = [
    "SCENARIOS",
    "SUITES",
    "TRAINING_SEEDS",
    "TSMG",
    "GameError",
    "Outcome",
    "Scenario",
    "Unreadable",
    "UnreadableReason",
    "Yardstick",
    "aec_env",
    "did_you_mean",
    "find_yardstick",
    "game_of",
    "has_twins",
    "known_scenario",
    "openspiel",
    "parallel_env",
    "parse_action",
    "register",
    "register_ladder",
    "register_vocabulary",
    "register_yardstick",
    "registered_ids",
    "rounds_of_play",
    "settings_of",
    "twin_of",
    "why_unknown",
]


def openspiel(name: str, /, *, observation: str = "auto", **parameters: Any) -> "OpenSpiel":
    """A game of OpenSpiel: ``openspiel("kuhn_poker", players=3)``. Needs the extra ``openspiel``.

    Environments take it as it is: ``textgames.environments.parallel.TextParallelEnv(openspiel("nim"))``. By name they
    are made of the id ``OpenSpiel-v0``: ``textgames.parallel_env("OpenSpiel-v0", name="nim")``. Parameters are the
    library's own; ``observation`` is that of :class:`textgames.open_spiel.game.OpenSpiel`.

    Raises:
        ValueError: no such game or parameter, or one that can't be played here; the message says why.
        ModuleNotFoundError: the library isn't installed; the message has the command.
    """
    from textgames.open_spiel.game import OpenSpiel

    return OpenSpiel(name=name, parameters=parameters, observation=observation)


# modules that pages and errors name after "import textgames": textgames.conformance.check(id)
__getattr__, _, _ = lazy_loader.attach(__name__, submodules={"conformance", "solving"})
