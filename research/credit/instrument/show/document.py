"""The shape of the JSON document of ``textbench credit --json``, for its published schema.

It follows from the data classes of the results: an estimate becomes a :class:`FigureShape`.
"""

from typing import Any, NotRequired, get_type_hints

from pydantic import with_config
from typing_extensions import TypedDict

from agents.common import Estimate
from benchmark.runs import STRICT
from research.credit.instrument.draws import DrawResult
from research.credit.instrument.fidelity import Fidelity
from research.credit.instrument.gradients.quality import GradientQuality
from research.credit.instrument.results import CreditReport, MethodResult, TruthSummary
from research.credit.instrument.show.tables import Item


@with_config(STRICT)
class FigureShape(TypedDict):
    """A figure with its 95% interval; null if it isn't defined."""

    value: float | None
    low: float | None
    high: float | None


_LIST: Any = list
_OPTIONAL: Any = NotRequired


def _fields(kind: type) -> dict[str, Any]:
    return {name: FigureShape if hint is Estimate else hint for name, hint in get_type_hints(kind).items()}


def _shape(name: str, about: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # by a name, as the fields aren't written out
    shape = make(name, fields)
    shape.__doc__ = about
    return with_config(STRICT)(shape)


_OF_GRADIENT = {f"gradient_{name}": NotRequired[FigureShape] for name in _fields(GradientQuality) if name != "bias"}
_OF_METHOD = {name: kind for name, kind in _fields(MethodResult).items() if name not in ("fidelity", "gradient")}
_DRAW = _shape("DrawShape", "The effect of a draw rule on a method's gradient.", _fields(DrawResult))
_METHOD = _shape(
    "MethodShape",
    "The figures of one method of credit. Without a model in the process ``gradient_cosine`` and ``bias`` are null, "
    "and the other figures of gradients are missing.",
    _OF_METHOD
    | _fields(Fidelity)
    | _OF_GRADIENT
    | dict.fromkeys(["gradient_cosine", "bias"], FigureShape | None)
    | {"normalisations": dict[str, FigureShape], "draws": _LIST[_DRAW]},
)
_TRUTH = _shape("TruthShape", "The source and the reliability of the true advantages.", _fields(TruthSummary))
_ITEM = _shape("ItemShape", "An item of ``--checklist``; ``said`` is null if it is yours to tell.", _fields(Item))

CreditDocument = _shape(
    "CreditDocument",
    'The result of ``textbench credit``; "oracle" and "noise" are always among the methods.',
    _fields(CreditReport)
    | {"setting": dict[str, Any], "truth": _TRUTH, "methods": _LIST[_METHOD], "skipped": dict[str, str]}
    | {"episode_lengths": list[float], "weak": bool, "checklist": _OPTIONAL[_LIST[_ITEM]]},
)
