from .configuration.config import MSGRPOConfig, training_config_schema
from .credit.arithmetic import group_advantages
from .credit.batch import episode_return
from .draws.sampling import sample_episodes
from .errors import ConfigError
from .learner.loss import policy_loss
from .trainer import MSGRPOTrainer

__all__ = [
    "ConfigError",
    "MSGRPOConfig",
    "MSGRPOTrainer",
    "episode_return",
    "group_advantages",
    "policy_loss",
    "sample_episodes",
    "training_config_schema",
]
