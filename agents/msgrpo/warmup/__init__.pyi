from .demonstrations import TooFewDecisionsError, demonstrate, shuffled_seeds, untaught_seeds
from .imitation import Imitation, TaughtDecision, imitate
from .start import Demonstrations, Teaching, prompts_taught, taught, warm_start, warmup_config

__all__ = [
    "Demonstrations",
    "Imitation",
    "TaughtDecision",
    "Teaching",
    "TooFewDecisionsError",
    "demonstrate",
    "imitate",
    "prompts_taught",
    "shuffled_seeds",
    "taught",
    "untaught_seeds",
    "warm_start",
    "warmup_config",
]
