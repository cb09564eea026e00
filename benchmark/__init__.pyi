from .errors import BenchmarkError, StorageError, UsageError, storing, unknown_name
from .evaluation import evaluate
from .results import Comparison, Leaderboard, Results, read_results
from .runs.replay import replay

__all__ = [
    "BenchmarkError",
    "Comparison",
    "Leaderboard",
    "Results",
    "StorageError",
    "UsageError",
    "evaluate",
    "read_results",
    "replay",
    "storing",
    "unknown_name",
]
