"""How long an episode of a Gymnasium environment may be: ``max_steps`` and Gymnasium's own ``max_episode_steps``.

``max_steps`` counts the rounds of a game, ``max_episode_steps`` the calls of ``step``. For one player these are the
same; beside players inside, a step takes the rounds up to the next turn of the player outside. Whoever gives
``max_episode_steps`` gets exactly that many steps, in a single environment and in a batch: it stands in place of
``max_steps``, which most ids are registered with.
"""

import copy
from types import FrameType
from typing import NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from textgames.settings import check_whole

NO_LIMIT = -1
"""How ``max_episode_steps`` says that there is no limit, in Gymnasium too."""


class Limits(NamedTuple):
    """What ends an episode that the game doesn't end.

    Attributes:
        rounds: of the game, or ``None`` for no limit.
        steps: of the environment; infinite where none was asked for.
        given: ``max_episode_steps`` as it was given.
    """

    rounds: int | None
    steps: float
    given: int | None

    @classmethod
    def of(cls, max_steps: int | None, max_episode_steps: int | None, players: int) -> "Limits":
        """The limits of an environment for one of so many players.

        Raises:
            ValueError: ``max_episode_steps`` is no whole number of at least 1, and not -1.
        """
        if max_episode_steps is None:
            return cls(max_steps, float("inf"), None)
        if max_episode_steps == NO_LIMIT:
            return cls(None, float("inf"), max_episode_steps)
        check_whole("max_episode_steps", max_episode_steps, 1)
        return cls(max_episode_steps if players == 1 else None, max_episode_steps, max_episode_steps)

    def stated_in(self, spec: EnvSpec | None, longest_episode: int | None) -> EnvSpec | None:
        """A copy of Gymnasium's spec that states the limit (or the rules' own) and makes the same environment again."""
        if spec is None:
            return None
        stated = copy.copy(spec)
        stated.kwargs = {**spec.kwargs, "max_episode_steps": self.given}
        if self.steps == float("inf"):
            stated.max_episode_steps = longest_episode if self.rounds is None else self.rounds
        else:
            stated.max_episode_steps = int(self.steps)
        return stated


def asked_of_gymnasium(caller: FrameType | None) -> int | None:
    """The ``max_episode_steps`` that ``gymnasium.make`` was given, where it is who makes this environment.

    Gymnasium keeps it for a ``TimeLimit`` around the environment. That can cut an episode shorter, but an environment
    with a limit of its own would still end first where more steps were asked for, and in the last step it would neither
    tell the success nor the metrics, for which it must know that it is the last. There is no other way to learn of it.
    """
    if caller is None or caller.f_code is not gym.make.__code__:
        return None
    asked: int | None = caller.f_locals["max_episode_steps"]
    return asked
