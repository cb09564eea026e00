"""The paper's claims, judged from results: each has figures with intervals and a verdict.

A claim *holds* here when the whole 95% interval of its figure is on its side, *does not hold* when the whole interval
is on the other side, and is *undecided* otherwise. Sources of chance are the training run (its seed) and the episode,
so intervals of differences between trained models and bases are over both. Differences between arms are paired by
seed, with Student's interval over seeds.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from agents.common import Array, Estimate, student
from research.jobs.intervals import difference_of_means, paired, ratio_of_means
from research.reproduction.reproduction import Reproduction

HEADLINE_RATIO = 1.5  # the paper: the post-trained model beats the large one by 50% on Frozen Lake

LAKE, SNAKE = "frozen-lake", "snake"
VARIANTS: Mapping[str, tuple[str, ...]] = {
    LAKE: ("frozen-lake-slippery", "frozen-lake-big"),
    SNAKE: ("snake-poison", "snake-long"),
}


class Verdict(StrEnum):
    """Whether a claim holds here."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTED = "not tested"


class Finding(NamedTuple):
    """A figure on which a claim rests."""

    about: str  # what was compared, in words
    estimate: Estimate  # the figure with its 95% interval
    threshold: float  # what the figure must exceed for the claim to hold
    verdict: Verdict  # whether the interval lies above the threshold
    samples: str  # how much it rests on: ``"5 runs of 500 episodes"``


class Claim(NamedTuple):
    """A claim of the paper, with what was found here."""

    name: str
    text: str
    findings: tuple[Finding, ...]
    verdict: Verdict


def judge(
    results: Reproduction, games: Sequence[str], main: str, pairs: Sequence[tuple[str, str]], scenarios: Sequence[str]
) -> list[Claim]:
    """Return all claims.

    ``main`` is the method's own arm, the subject of all claims but the one about sampling. Each of the ``pairs`` is an
    arm that draws by the method, and one that differs in nothing but how it draws.
    """
    headline = []
    trained, large = results.final_returns(LAKE, main, LAKE), results.agents.get("large", {}).get(LAKE)
    if len(trained) and large is not None:
        size = results.parameters.get("large", 0) / max(1, results.parameters.get("small", 0))
        about = f"return on {LAKE}: post-trained small over large base ({size:.0f} times the parameters)"
        headline.append(_finding(about, ratio_of_means(trained, large.returns), HEADLINE_RATIO, trained))
    sampling = []
    for game, pair in product(games, pairs):  # on the mean of the training curve: how well and how soon it learns
        curves = ({run.seed: float(run.curves[game].mean()) for run in results.runs_of(game, arm)} for arm in pair)
        if len(differences := paired(*curves)):
            about, estimate = f"mean of the training curve on {game}: {pair[0]} minus {pair[1]}", student(differences)
            sampling.append(
                Finding(about, estimate, 0.0, verdict_of(estimate, 0.0), f"{len(differences)} pairs of runs")
            )
    variants = [(game, name) for game in games for name in VARIANTS.get(game, ()) if name in scenarios]
    both = set(games) >= {LAKE, SNAKE}
    improved = "both games" if both else f"{' and '.join(games)} (the paper's claim is of {LAKE} and {SNAKE})"
    told = {
        "small beats large": (
            "The post-trained small model beats the large base on Frozen Lake by 50% (a ratio of at least 1.5).",
            headline,
        ),
        "AAW improves training": ("AAW sampling improves training.", sampling),
        "carries over": (
            "Training on one scenario carries over to its variants.",
            _improvements(results, main, variants),
        ),
        "returns improve": (
            f"Returns improve on {improved}.",
            _improvements(results, main, [(game, game) for game in games]),
        ),
    }
    return [
        Claim(name, text, tuple(findings), combine([finding.verdict for finding in findings]))
        for name, (text, findings) in told.items()
    ]


def beside(results: Reproduction, game: str, arm: str, other: str) -> Estimate | None:
    """Return how much better an arm is than another on fresh episodes, over pairs of seeds; ``None`` without a pair."""
    own, theirs = (
        {run.seed: float(run.final[game].returns.mean()) for run in results.runs_of(game, name) if game in run.final}
        for name in (arm, other)
    )
    differences = paired(own, theirs)
    return student(differences) if len(differences) else None


def _improvements(results: Reproduction, arm: str, pairs: Sequence[tuple[str, str]]) -> list[Finding]:
    """Return the findings on each scenario after training on a game, if both it and the base were played there."""
    findings = []
    for game, scenario in pairs:
        trained, base = results.final_returns(game, arm, scenario), results.agents.get("small", {}).get(scenario)
        if len(trained) and base is not None:
            about = f"return on {scenario} after training on {game}: post-trained minus base"
            findings.append(_finding(about, difference_of_means(trained, base.returns), 0.0, trained))
    return findings


def verdict_of(estimate: Estimate, threshold: float) -> Verdict:
    """Return what an interval says about a threshold; a figure without an interval decides nothing."""
    if estimate.low is None or estimate.high is None:
        return Verdict.UNDECIDED
    if estimate.low > threshold:
        return Verdict.HOLDS
    return Verdict.FAILS if estimate.high <= threshold else Verdict.UNDECIDED


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on several findings: all have to hold, one that fails is enough to fail."""
    if not verdicts:
        return Verdict.UNTESTED
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.UNDECIDED


def _finding(about: str, estimate: Estimate, threshold: float, trained: Array) -> Finding:
    runs, episodes = trained.shape
    samples = f"{runs} run{'s' if runs > 1 else ''} of {episodes} episodes"
    return Finding(about, estimate, threshold, verdict_of(estimate, threshold), samples)
