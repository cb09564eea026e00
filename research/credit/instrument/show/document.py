"""The shape of the JSON document of ``textbench credit --json``, for its published schema."""

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from benchmark.runs import STRICT


@with_config(STRICT)
class FigureShape(TypedDict):
    """A figure with its 95% interval; null if it isn't defined."""

    value: float | None
    low: float | None
    high: float | None


@with_config(STRICT)
class DrawShape(TypedDict):
    """What a draw rule does to a method's gradient."""

    rule: str
    m: int
    drawn: float
    tokens: float
    cosine: FigureShape
    minus_uniform: FigureShape
    minus_nonzero: FigureShape
    cosine_per_episode: FigureShape
    cosine_per_kilotoken: FigureShape
    mean_cosine: FigureShape
    variance: FigureShape
    empty: float
    effective_episodes: float
    reference: str


@with_config(STRICT)
class MethodShape(TypedDict):
    """The figures of one method of credit.

    Without a model in the process ``gradient_cosine`` and ``bias`` are null, and the other figures of gradients are
    missing.
    """

    name: str
    correlation: FigureShape
    sign_agreement: FigureShape
    mean_correlation: FigureShape
    mean_sign_agreement: FigureShape
    gradient_cosine: FigureShape | None
    bias: FigureShape | None
    gradient_variance: NotRequired[FigureShape]
    gradient_signal_to_noise_per_episode: NotRequired[FigureShape]
    gradient_signal_to_noise_per_token: NotRequired[FigureShape]
    normalisations: dict[str, FigureShape]
    draws: list[DrawShape]
    extra_tokens: float
    seconds: float
    granularity: str


@with_config(STRICT)
class TruthShape(TypedDict):
    """How the true advantages were found."""

    source: str
    samples: int | None
    states: int
    questions: int
    expected_return: float
    invalid: float
    reliability: float
    gradient_reliability: float | None
    other_forms: float
    forks: float


@with_config(STRICT)
class ItemShape(TypedDict):
    """An item of the checklist of ``--checklist``; ``said`` is null if it is yours to tell."""

    item: str
    required: bool
    said: str | None


@with_config(STRICT)
class CreditDocument(TypedDict):
    """The result of ``textbench credit``; "oracle" and "noise" are always among the methods."""

    agent: str
    game: str
    setting: dict[str, Any]
    truth: TruthShape
    episode_length: float
    episode_lengths: list[float]
    parameters: int | None
    episode_tokens: float
    methods: list[MethodShape]
    skipped: dict[str, str]
    no_gradient: str | None
    weak: bool
    checklist: NotRequired[list[ItemShape]]
