from .__main__ import check_packages, load, main
from .configuration.config import MSGRPOConfig, training_config_schema
from .configuration.settings import POINTS
from .credit.arithmetic import compared, group_advantages
from .credit.batch import Heads, StepCredit, TokenRow, checked_credit, episode_return
from .credit.fresh import local_policy, task_of
from .critic import Beside
from .draws import DRAWS, Drawn, DrawRule, Ints, effective_sample_size, sample_episodes
from .engines.live import LiveEngine
from .errors import ConfigError, DivergenceError, RolloutError, UnusableModelError
from .filters import Kept, spreads
from .learner.loss import policy_loss
from .plugins import Method, Shared, Variant, configured, learner_of
from .rollouts import Rollouts, completed, layout_digest, layout_of
from .run.saving import iteration_of, load_state, save_model
from .segments import Segmenter, needed_segmenter
from .surrogates import SURROGATES
from .surrogates.tokens import CISPO, GSPO, PPO, PlainSurrogate, Surrogate, Tokens
from .tasks import Hint, Iteration, Mask
from .trainer import MSGRPOTrainer
from .trajectories import prompts_of, prompts_of_random_play, trajectories_of

__all__ = [
    "CISPO",
    "DRAWS",
    "GSPO",
    "POINTS",
    "PPO",
    "SURROGATES",
    "Beside",
    "ConfigError",
    "DivergenceError",
    "DrawRule",
    "Drawn",
    "Heads",
    "Hint",
    "Ints",
    "Iteration",
    "Kept",
    "LiveEngine",
    "MSGRPOConfig",
    "MSGRPOTrainer",
    "Mask",
    "Method",
    "PlainSurrogate",
    "RolloutError",
    "Rollouts",
    "Segmenter",
    "Shared",
    "StepCredit",
    "Surrogate",
    "TokenRow",
    "Tokens",
    "UnusableModelError",
    "Variant",
    "check_packages",
    "checked_credit",
    "compared",
    "completed",
    "configured",
    "effective_sample_size",
    "episode_return",
    "group_advantages",
    "iteration_of",
    "layout_digest",
    "layout_of",
    "learner_of",
    "load",
    "load_state",
    "local_policy",
    "main",
    "needed_segmenter",
    "policy_loss",
    "prompts_of",
    "prompts_of_random_play",
    "sample_episodes",
    "save_model",
    "spreads",
    "task_of",
    "training_config_schema",
    "trajectories_of",
]
