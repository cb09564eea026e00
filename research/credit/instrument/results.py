"""What a measurement of credit found, as typed data, and its JSON, ``textbench credit --json``, with its schema."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, NotRequired, get_type_hints

from pydantic import with_config
from typing_extensions import TypedDict

from agents.common import Estimate
from benchmark.runs import STRICT
from research.credit.instrument.draws import DrawResult
from research.credit.instrument.fidelity import Fidelity, GradientQuality

LEAST_CEILING = 0.5
"""A cell (a policy on a game) is weak where the oracle's own gradient has a smaller cosine with the exact one.

There three quarters of a batch's squared gradient or more are noise even with perfect credit: methods are hardly told
apart by it, and a bias of 0.7 is told from none by some dozens of batches at best. Weak cells are in no mean.
"""


@dataclass(frozen=True)
class MethodResult:
    """One method of credit.

    Attributes:
        gradient: how good the gradient of a whole batch is, all episodes; ``None`` without a model to take it of.
        normalisations: the cosine of a batch's gradient with the exact one where the advantages are treated otherwise:
            "divided by group std" and "times group std" (of returns), "mean per response" (each response's tokens
            weigh 1 together). Other normalisers only change the gradient's length.
        extra_tokens: response tokens of fresh rollouts that it asked for, per batch.
        seconds: what it took to assign the credit of one batch.
        granularity: what it told apart in these batches: "token", "step" or "episode".
    """

    name: str
    fidelity: Fidelity
    gradient: GradientQuality | None
    normalisations: Mapping[str, Estimate] = field(default_factory=dict)
    draws: tuple[DrawResult, ...] = ()
    extra_tokens: float = 0.0
    seconds: float = 0.0
    granularity: str = "step"

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "gradient_cosine": None, "bias": None}
        found |= {name: figure.to_json() for name, figure in vars(self.fidelity).items()}
        if self.gradient is not None:
            for name, figure in vars(self.gradient).items():
                found[name if name == "bias" else f"gradient_{name}"] = figure.to_json()
        return found | {
            "normalisations": {name: figure.to_json() for name, figure in self.normalisations.items()},
            "draws": [draw.to_json() for draw in self.draws],
            "extra_tokens": self.extra_tokens,
            "seconds": self.seconds,
            "granularity": self.granularity,
        }


@dataclass(frozen=True)
class TruthSummary:
    """How the true advantages were found."""

    source: str  # of the policy's probabilities: "known", "scored" (computed exactly) or "sampled"
    samples: int | None  # responses to each question; ``None`` if the probabilities are exact
    states: int  # different states within reach
    questions: int  # different prompts that the policy was asked
    expected_return: float  # what the policy expects from these starts, the mean over the seats
    invalid: float  # the probability of an invalid response, by visits
    # the correlation of the advantages from two halves of the sampled responses, over the steps played, brought to
    # the full sample's by Spearman's and Brown's formula; 1 if the probabilities are exact
    reliability: float
    # the cosine of the gradients from the two halves; 1 if it is exact, ``None`` without one
    gradient_reliability: float | None
    # the share of the valid responses played that aren't ``<action>NAME</action>``, which an exact gradient leaves
    # out; 0 if responses were sampled, as then all forms are in it
    other_forms: float
    forks: float  # the share of the steps played whose true advantage isn't 0: it mattered there what was done


@dataclass(frozen=True)
class CreditReport:
    """A measurement of several methods on one policy and one game.

    Attributes:
        methods: the results, in the order asked for; "oracle" and "noise" are always among them.
        skipped: ``{method: why it could not be measured}``.
        no_gradient: why there are no gradients; ``None`` if there are.
        episode_tokens, episode_length: response tokens and steps of an episode.
        episode_lengths: the least, the median and the largest number of steps.
        parameters: of the policy's model; ``None`` without one in this process.
    """

    agent: str
    game: str
    setting: Mapping[str, Any]
    truth: TruthSummary
    methods: tuple[MethodResult, ...]
    skipped: Mapping[str, str]
    no_gradient: str | None
    episode_tokens: float
    episode_length: float
    episode_lengths: tuple[int, float, int]
    parameters: int | None = None

    def __getitem__(self, name: str) -> MethodResult:
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    @property
    def weak(self) -> bool:
        """Whether the oracle's own gradient is mostly noise, see :data:`LEAST_CEILING`."""
        oracle = self["oracle"].gradient
        return oracle is not None and oracle.cosine.value < LEAST_CEILING

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``textbench credit --json`` prints."""
        return vars(self) | {
            "setting": dict(self.setting),
            "truth": asdict(self.truth),
            "methods": [method.to_json() for method in self.methods],
            "skipped": dict(self.skipped),
            "episode_lengths": list(self.episode_lengths),
            "weak": self.weak,
        }


class Item(NamedTuple):
    """One item of the checklist; ``said`` is ``None`` if the measurement doesn't know."""

    item: str
    required: bool
    said: str | None


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
