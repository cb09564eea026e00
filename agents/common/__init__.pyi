from .arguments import Parser, real_number, whole_number
from .clock import duration
from .console import PlainConsole
from .files import check_folder, check_writable, open_for_appending, reason_of, refusal, replacing, replacing_folder
from .interrupt import kills_interrupt
from .intervals import (
    ANYWHERE,
    CONFIDENCE,
    RESAMPLES,
    SEED,
    Array,
    Estimate,
    Range,
    column,
    half_interval,
    is_above,
    mean,
    mean_estimate,
    means_of_estimates,
    over_parts,
    over_rows,
    percentiles,
    ratio,
    student,
    student_quantile,
    without_each,
)
from .locking import LOCK_NAME, FolderLock, strangers
from .progress import ProgressLines
from .reading import read_bytes, read_json, read_text
from .redaction import Redactor, url_secrets
from .refusals import problem_of, shown
from .terminal import plain_streams
from .toml import read_setting, read_toml, to_toml

__all__ = [
    "ANYWHERE",
    "CONFIDENCE",
    "LOCK_NAME",
    "RESAMPLES",
    "SEED",
    "Array",
    "Estimate",
    "FolderLock",
    "Parser",
    "PlainConsole",
    "ProgressLines",
    "Range",
    "Redactor",
    "check_folder",
    "check_writable",
    "column",
    "duration",
    "half_interval",
    "is_above",
    "kills_interrupt",
    "mean",
    "mean_estimate",
    "means_of_estimates",
    "open_for_appending",
    "over_parts",
    "over_rows",
    "percentiles",
    "plain_streams",
    "problem_of",
    "ratio",
    "read_bytes",
    "read_json",
    "read_setting",
    "read_text",
    "read_toml",
    "real_number",
    "reason_of",
    "refusal",
    "replacing",
    "replacing_folder",
    "shown",
    "strangers",
    "student",
    "student_quantile",
    "to_toml",
    "url_secrets",
    "whole_number",
    "without_each",
]
