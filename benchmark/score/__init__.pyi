from .beside import solo_losses
from .cache import FolderCache, read_cache, write_cache
from .comparison import return_range, solo_scenarios
from .differences import holm, paired, paired_p_value, student_p_value, student_tests
from .document import EstimateView
from .levels import Fit, Found, Seen
from .luck import cross_fitted
from .move_losses import ALL, Decision, MoveLosses
from .overall import game_weights, span_of
from .references import References
from .results import Cell, ResultColumns, corrected_returns, luck_free, read_columns
from .samples import samples_of
from .scores import to_view

__all__ = [
    "ALL",
    "Cell",
    "Decision",
    "EstimateView",
    "Fit",
    "FolderCache",
    "Found",
    "MoveLosses",
    "References",
    "ResultColumns",
    "Seen",
    "corrected_returns",
    "cross_fitted",
    "game_weights",
    "holm",
    "luck_free",
    "paired",
    "paired_p_value",
    "read_cache",
    "read_columns",
    "return_range",
    "samples_of",
    "solo_losses",
    "solo_scenarios",
    "span_of",
    "student_p_value",
    "student_tests",
    "to_view",
    "write_cache",
]
