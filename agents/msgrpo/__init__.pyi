from .configuration.config import MSGRPOConfig, training_config_schema
from .credit.arithmetic import compared, group_advantages
from .credit.batch import episode_return
from .draws import Drawn, Ints, sample_episodes
from .errors import ConfigError
from .filters import Kept, spreads
from .learner.loss import policy_loss
from .plugins import Shared, Variant, configured, learner_of
from .rows import TrainingRow
from .surrogates import SURROGATES
from .surrogates.tokens import CISPO, GSPO, PPO, PlainSurrogate, Surrogate, Tokens
from .tasks import Hint, Iteration
from .trainer import MSGRPOTrainer

__all__ = [
    "CISPO",
    "GSPO",
    "PPO",
    "SURROGATES",
    "ConfigError",
    "Drawn",
    "Hint",
    "Ints",
    "Iteration",
    "Kept",
    "MSGRPOConfig",
    "MSGRPOTrainer",
    "PlainSurrogate",
    "Shared",
    "Surrogate",
    "Tokens",
    "TrainingRow",
    "Variant",
    "compared",
    "configured",
    "episode_return",
    "group_advantages",
    "learner_of",
    "policy_loss",
    "sample_episodes",
    "spreads",
    "training_config_schema",
]
