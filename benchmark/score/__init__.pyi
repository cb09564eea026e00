from .beside.skill import solo_losses
from .cache import FolderCache, read_cache, write_cache
from .comparing.comparison import return_range, solo_scenarios
from .differences import holm, paired_p_value
from .document import EstimateView
from .ladders.fit import Fit, Found, Seen
from .luck.cells import corrected_returns, luck_free
from .move_losses import Decision
from .overall import game_weights, span_of
from .references import References
from .results import Cell, ResultColumns
from .scores import to_view
from .statistics import column, mean_estimate, means_of_estimates

__all__ = [
    "Cell",
    "Decision",
    "EstimateView",
    "Fit",
    "FolderCache",
    "Found",
    "References",
    "ResultColumns",
    "Seen",
    "column",
    "corrected_returns",
    "game_weights",
    "holm",
    "luck_free",
    "mean_estimate",
    "means_of_estimates",
    "paired_p_value",
    "read_cache",
    "return_range",
    "solo_losses",
    "solo_scenarios",
    "span_of",
    "to_view",
    "write_cache",
]
