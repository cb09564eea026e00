"""The fixed scenarios that agents are compared on, as data.

Episode ``k`` of a scenario is ``seed = first_seed + k``, the same for every agent. Training draws its seeds from 0 to
9,999 only, so no evaluation layout is ever a training layout by seed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium

from textgames.episode_rules import game_settings, load_game
from textgames.registry import game_of, parallel_env, settings_of
from textgames.tsmg import TSMG

if TYPE_CHECKING:
    from textgames.parallel import TextParallelEnv

TRAINING_SEEDS = range(10_000)
"""The seeds that training may use."""


class Scenario(NamedTuple):
    """One row of the table.

    Attributes:
        name: what commands call it.
        env_id: the environment's id.
        kwargs: the environment's settings, without the horizon.
        horizon: rounds after which an episode is truncated.
        first_seed: seed of episode 0.
        training: whether it is one of the two that agents are post-trained on.
    """

    name: str
    env_id: str
    kwargs: Mapping[str, Any]
    horizon: int
    first_seed: int
    training: bool = False

    def make(self, **kwargs: Any) -> Any:
        """Its environment: a Gymnasium one for one player, else a ParallelEnv. ``kwargs`` override settings."""
        # what isn't the game's own (a render mode, gymnasium.make's arguments) plays no part in who its players are
        game = load_game(settings_of(self.env_id)["game"])
        own = {name: value for name, value in {**self.kwargs, **kwargs}.items() if name in game_settings(game)}
        if len(game_of(self.env_id, **own).players) > 1:
            return self.parallel_env(**kwargs)
        return gymnasium.make(self.env_id, **{"max_steps": self.horizon, **self.kwargs, **kwargs})

    def parallel_env(self, **kwargs: Any) -> "TextParallelEnv":
        return parallel_env(self.env_id, **{"max_steps": self.horizon, **self.kwargs, **kwargs})

    def game(self) -> TSMG[Any]:
        return game_of(self.env_id, **self.kwargs)

    def seed(self, episode: int) -> int:
        return self.first_seed + episode


def _scenario(
    name: str, env_id: str, horizon: int, first_seed: int, *, training: bool = False, **kwargs: Any
) -> Scenario:
    return Scenario(name, env_id, MappingProxyType(kwargs), horizon, first_seed, training)


_LAKE, _SNAKE = "TextFrozenLake-v0", "TextSnake-v0"

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            _scenario(
                "frozen-lake", _LAKE, 8, 10_000, training=True, size=4, frozen_probability=0.8, is_slippery=False
            ),
            _scenario("frozen-lake-slippery", _LAKE, 15, 20_000, size=4, frozen_probability=0.9, is_slippery=True),
            _scenario("frozen-lake-big", _LAKE, 20, 30_000, size=8, frozen_probability=0.8, is_slippery=False),
            _scenario("snake", _SNAKE, 8, 40_000, training=True, num_apples=5, num_opponents=1),
            _scenario("snake-long", _SNAKE, 20, 50_000, num_apples=5, num_opponents=1),
            _scenario(
                "snake-poison", _SNAKE, 20, 60_000, num_apples=3, apple_reward=-1.0, num_bananas=3, num_opponents=1
            ),
            _scenario("snake-duel", _SNAKE, 30, 70_000, num_apples=5, num_players=2, num_opponents=0),
        )
    }
)
"""The scenarios by name, in the order of the tables."""
