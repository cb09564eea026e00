from .action_calls import read_actions_as_calls
from .environment import GameEnvironment, game_environment
from .rollouts import StepRollouts, episode_return
from .starts import start_dataset

__all__ = [
    "GameEnvironment",
    "StepRollouts",
    "episode_return",
    "game_environment",
    "read_actions_as_calls",
    "start_dataset",
]
