"""What a measurement of credit found, as typed data and as the JSON that ``textbench credit --json`` prints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agents.common import Estimate
from research.credit.instrument.draws import DrawResult
from research.credit.instrument.fidelity import Fidelity
from research.credit.instrument.gradients.quality import GradientQuality

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
