from .action_probabilities import answer_after, score_actions
from .exploitability import Exploitability, behaviour_of, measure, requests_of
from .inspection import TIE, best_actions
from .world_model import WORLD_QUESTION, asked_after

__all__ = [
    "TIE",
    "WORLD_QUESTION",
    "Exploitability",
    "answer_after",
    "asked_after",
    "behaviour_of",
    "best_actions",
    "measure",
    "requests_of",
    "score_actions",
]
