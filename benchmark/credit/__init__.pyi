from .batches import Setting
from .draws.study import DrawStudy, study_draws
from .exact.truth import Truth
from .instrument import Instrument, default_methods, measure, methods_of
from .results import CreditReport, MethodResult
from .show.pictures import board_picture

__all__ = [
    "CreditReport",
    "DrawStudy",
    "Instrument",
    "MethodResult",
    "Setting",
    "Truth",
    "board_picture",
    "default_methods",
    "measure",
    "methods_of",
    "study_draws",
]
