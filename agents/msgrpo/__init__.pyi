from .__main__ import check_packages, load
from .configuration.config import MSGRPOConfig, training_config_schema
from .credit.arithmetic import compared, group_advantages
from .credit.batch import TokenRow, episode_return
from .draws import Drawn, Ints, sample_episodes
from .errors import ConfigError, DivergenceError, UnusableModelError
from .filters import Kept, spreads
from .learner.loss import policy_loss
from .plugins import Method, Shared, Variant, configured, learner_of
from .run.saving import save_model
from .surrogates import SURROGATES
from .surrogates.tokens import CISPO, GSPO, PPO, PlainSurrogate, Surrogate, Tokens
from .tasks import Hint, Iteration
from .trainer import MSGRPOTrainer
from .trajectories import prompts_of

__all__ = [
    "CISPO",
    "GSPO",
    "PPO",
    "SURROGATES",
    "ConfigError",
    "DivergenceError",
    "Drawn",
    "Hint",
    "Ints",
    "Iteration",
    "Kept",
    "MSGRPOConfig",
    "MSGRPOTrainer",
    "Method",
    "PlainSurrogate",
    "Shared",
    "Surrogate",
    "TokenRow",
    "Tokens",
    "UnusableModelError",
    "Variant",
    "check_packages",
    "compared",
    "configured",
    "episode_return",
    "group_advantages",
    "learner_of",
    "load",
    "policy_loss",
    "prompts_of",
    "sample_episodes",
    "save_model",
    "spreads",
    "training_config_schema",
]
