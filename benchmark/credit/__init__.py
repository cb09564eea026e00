"""How good credit is: methods of credit assignment measured against the advantage that is true.

``game, policy -> all that may happen -> all that the policy may answer -> true advantages and the exact gradient``, and
beside them ``batches of episodes -> a method's credit``. :func:`measure` compares the two, :func:`study_draws` looks at
draw rules, and an :class:`Instrument` keeps everything for more questions about the same batches.

Importing this package does not import torch; its names are loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.credit.batches import Setting
    from benchmark.credit.draws.study import DrawStudy, study_draws
    from benchmark.credit.exact.truth import Truth
    from benchmark.credit.instrument import Instrument, default_methods, measure, methods_of
    from benchmark.credit.results import CreditReport, MethodResult
    from benchmark.credit.show.pictures import board_picture

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

_HOMES = {
    "batches": ("Setting",),
    "draws.study": ("DrawStudy", "study_draws"),
    "instrument": ("Instrument", "default_methods", "measure", "methods_of"),
    "show.pictures": ("board_picture",),
    "results": ("CreditReport", "MethodResult"),
    "exact.truth": ("Truth",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
