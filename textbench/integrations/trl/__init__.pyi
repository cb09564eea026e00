from .environment import GameEnvironment as GameEnvironment
from .environment import game_environment as game_environment
from .environment import read_actions_as_calls as read_actions_as_calls
from .rollouts import StepRollouts as StepRollouts
from .rollouts import episode_return as episode_return
from .rollouts import start_dataset as start_dataset
