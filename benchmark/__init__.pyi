from .errors import BenchmarkError, StorageError, UsageError
from .evaluation import evaluate
from .results import Comparison, Leaderboard, Results, read_results

__all__ = [
    "BenchmarkError",
    "Comparison",
    "Leaderboard",
    "Results",
    "StorageError",
    "UsageError",
    "evaluate",
    "read_results",
]
