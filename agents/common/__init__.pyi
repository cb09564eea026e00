from .arguments import Parser, real_number
from .clock import duration
from .files import check_folder, check_writable, open_for_appending, reason_of, refusal, replacing
from .interrupt import kills_interrupt
from .intervals import (
    CONFIDENCE,
    Array,
    Estimate,
    column,
    is_above,
    mean_estimate,
    means_of_estimates,
    over_rows,
    student,
    student_quantile,
)
from .locking import LOCK_NAME, FolderLock, strangers
from .reading import read_bytes, read_json, read_text
from .redaction import Redactor, url_secrets
from .refusals import problem_of, shown
from .toml import read_setting, to_toml

__all__ = [
    "CONFIDENCE",
    "LOCK_NAME",
    "Array",
    "Estimate",
    "FolderLock",
    "Parser",
    "Redactor",
    "check_folder",
    "check_writable",
    "column",
    "duration",
    "is_above",
    "kills_interrupt",
    "mean_estimate",
    "means_of_estimates",
    "open_for_appending",
    "over_rows",
    "problem_of",
    "read_bytes",
    "read_json",
    "read_setting",
    "read_text",
    "real_number",
    "reason_of",
    "refusal",
    "replacing",
    "shown",
    "strangers",
    "student",
    "student_quantile",
    "to_toml",
    "url_secrets",
]
