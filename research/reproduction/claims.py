"""The paper's claims, judged from results: pure functions, each giving figures with intervals and a verdict.

A claim *holds* here when the whole 95% interval of its figure is on its side, *does not hold* when the whole interval
is on the other side, and is *undecided* otherwise. Sources of chance are the training run (its seed) and the episode,
so intervals of differences between trained models and bases are over both. Differences between arms are paired by
seed, with Student's interval over seeds.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from agents.common import Array, Estimate, student
from benchmark.score import paired
from research.jobs.intervals import difference_of_means, ratio_of_means
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
    results: Reproduction,
    games: Sequence[str],
    main: str,
    pairs: Sequence[tuple[str, str]],
    scenarios: Sequence[str],
) -> list[Claim]:
    """Return all claims.

    Args:
        results: what was found.
        games: the scenarios that runs were trained on.
        main: the method's own arm, which claims 1, 3 and 4 are about.
        pairs: an arm that draws by the method, and one that differs in nothing but how it draws.
        scenarios: the scenarios that were evaluated.
    """
    return [
        small_beats_large(results, main),
        sampling_improves_training(results, games, pairs),
        carries_over(results, games, main, scenarios),
        returns_improve(results, games, main),
    ]


def small_beats_large(results: Reproduction, arm: str) -> Claim:
    """Headline: the post-trained small model beats the large base on Frozen Lake by 50%."""
    findings = []
    trained = results.final_returns(LAKE, arm, LAKE)
    large = results.agents.get("large", {}).get(LAKE)
    if len(trained) and large is not None:
        size = results.parameters.get("large", 0) / max(1, results.parameters.get("small", 0))
        about = f"return on {LAKE}: post-trained small over large base ({size:.0f} times the parameters)"
        findings.append(_finding(about, ratio_of_means(trained, large.returns), HEADLINE_RATIO, trained))
    text = "The post-trained small model beats the large base on Frozen Lake by 50% (a ratio of at least 1.5)."
    return _claim("small beats large", text, findings)


def sampling_improves_training(results: Reproduction, games: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Claim:
    """AAW sampling against other draws, on the mean of the training curve: how well and how soon it learns."""
    findings = []
    for game in games:
        for main, other in pairs:
            own = {run.seed: float(run.curves[game].mean()) for run in results.runs_of(game, main)}
            theirs = {run.seed: float(run.curves[game].mean()) for run in results.runs_of(game, other)}
            differences = paired(own, theirs)
            if len(differences):
                about, estimate = f"mean of the training curve on {game}: {main} minus {other}", student(differences)
                samples = f"{len(differences)} pairs of runs"
                findings.append(Finding(about, estimate, 0.0, verdict_of(estimate, 0.0), samples))
    return _claim("AAW improves training", "AAW sampling improves training.", findings)


def carries_over(results: Reproduction, games: Sequence[str], arm: str, scenarios: Sequence[str]) -> Claim:
    """Training on one scenario carries over to its variants."""
    findings = []
    for game in games:
        for variant in VARIANTS.get(game, ()):
            if variant in scenarios:
                findings += _improvement(results, game, arm, variant)
    return _claim("carries over", "Training on one scenario carries over to its variants.", findings)


def returns_improve(results: Reproduction, games: Sequence[str], arm: str) -> Claim:
    """Returns improve on the games that were trained on."""
    findings = [finding for game in games for finding in _improvement(results, game, arm, game)]
    if set(games) >= {LAKE, SNAKE}:
        text = "Returns improve on both games."
    else:
        text = f"Returns improve on {' and '.join(games)} (the paper's claim is of {LAKE} and {SNAKE})."
    return _claim("returns improve", text, findings)


def beside(results: Reproduction, game: str, arm: str, other: str) -> Estimate | None:
    """Return an arm's mean return on the fresh episodes of its game less another's, over runs paired by seed.

    The interval is Student's; ``None`` without a pair.
    """
    own, theirs = (
        {run.seed: float(run.final[game].returns.mean()) for run in results.runs_of(game, name) if game in run.final}
        for name in (arm, other)
    )
    differences = paired(own, theirs)
    return student(differences) if len(differences) else None


def _improvement(results: Reproduction, game: str, arm: str, scenario: str) -> list[Finding]:
    trained = results.final_returns(game, arm, scenario)
    base = results.agents.get("small", {}).get(scenario)
    if not len(trained) or base is None:
        return []
    about = f"return on {scenario} after training on {game}: post-trained minus base"
    return [_finding(about, difference_of_means(trained, base.returns), 0.0, trained)]


def verdict_of(estimate: Estimate, threshold: float) -> Verdict:
    """Return what an interval says about a threshold; a figure without an interval decides nothing."""
    if estimate.low is None or estimate.high is None:
        return Verdict.UNDECIDED
    if estimate.low > threshold:
        return Verdict.HOLDS
    return Verdict.FAILS if estimate.high <= threshold else Verdict.UNDECIDED


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a claim of several findings: it holds if all hold, fails if one fails, and else is
    undecided."""
    if not verdicts:
        return Verdict.UNTESTED
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.UNDECIDED


def _finding(about: str, estimate: Estimate, threshold: float, trained: Array) -> Finding:
    runs, episodes = trained.shape
    samples = f"{runs} run{'s' if runs > 1 else ''} of {episodes} episodes"
    return Finding(about, estimate, threshold, verdict_of(estimate, threshold), samples)


def _claim(name: str, text: str, findings: Sequence[Finding]) -> Claim:
    return Claim(name, text, tuple(findings), combine([finding.verdict for finding in findings]))
