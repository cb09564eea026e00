from .batches import Setting
from .exact.truth import Truth
from .instrument import Instrument, default_methods, measure, methods_of
from .results import CreditReport, MethodResult
from .show.pictures import board_picture

__all__ = [
    "CreditReport",
    "Instrument",
    "MethodResult",
    "Setting",
    "Truth",
    "board_picture",
    "default_methods",
    "measure",
    "methods_of",
]
