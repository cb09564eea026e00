from .authors import differing_claims, option_problem, response_problems
from .entry import Terms, name_problem
from .names import same_to_a_reader, shipped_problem
from .validation import MAX_PROBLEMS, Verdict, check_entry

__all__ = [
    "MAX_PROBLEMS",
    "Terms",
    "Verdict",
    "check_entry",
    "differing_claims",
    "name_problem",
    "option_problem",
    "response_problems",
    "same_to_a_reader",
    "shipped_problem",
]
