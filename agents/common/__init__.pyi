from .files import check_folder, reason_of, refusal
from .intervals import CONFIDENCE, Array, Estimate, is_above, over_rows, student_quantile
from .reading import read_bytes, read_text
from .refusals import problem_of, shown

__all__ = [
    "CONFIDENCE",
    "Array",
    "Estimate",
    "check_folder",
    "is_above",
    "over_rows",
    "problem_of",
    "read_bytes",
    "read_text",
    "reason_of",
    "refusal",
    "shown",
    "student_quantile",
]
