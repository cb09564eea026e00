from .action_probabilities import (
    Source,
    answer_after,
    exact_probabilities,
    has_local_model,
    plays_legal_only,
    sample_responses,
    score_actions,
)
from .exploitability import Exploitability, behaviour_of, measure, requests_of
from .inspection import TIE, best_actions
from .regret import DirectAnswers, exact_regret, random_positions
from .world_model import WORLD_QUESTION, asked_after

__all__ = [
    "TIE",
    "WORLD_QUESTION",
    "DirectAnswers",
    "Exploitability",
    "Source",
    "answer_after",
    "asked_after",
    "behaviour_of",
    "best_actions",
    "exact_probabilities",
    "exact_regret",
    "has_local_model",
    "measure",
    "plays_legal_only",
    "random_positions",
    "requests_of",
    "sample_responses",
    "score_actions",
]
