from .instrument.batches import Setting
from .instrument.exact.truth import Truth
from .instrument.instrument import Instrument, default_methods, measure, methods_of
from .instrument.results import CreditReport, MethodResult
from .instrument.show.document import CreditDocument
from .instrument.show.pictures import board_picture

__all__ = [
    "CreditDocument",
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
