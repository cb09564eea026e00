"""What an episode is worth: its return, whether the goal was reached, how many responses were invalid.

An episode that failed (a provider's error) has none of these, and Inspect leaves it out of their means. That isn't
silent: every score then counts it among its ``unscored_samples``, and the share of failed episodes is a score itself.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState

from textbench.integrations.inspect.solver import EPISODE

FAILED = "the episode failed"


def _score_of(value: Callable[[dict[str, Any]], Score]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        episode = state.store.get(EPISODE)
        return Score.unscored(reason=FAILED) if episode is None else value(episode)

    return score


@scorer(metrics=[mean(), stderr()], name="return")
def episode_return() -> Scorer:
    """What the player was paid: the score of ``textbench run``."""
    return _score_of(
        lambda episode: Score(
            value=episode["returns"][episode["player"]],
            explanation=f"{len(episode['responses'])} responses, returns {episode['returns']}",
        )
    )


@scorer(metrics=[mean(), stderr()], name="success")
def success() -> Scorer:
    """Whether the player has reached its goal, as 1 or 0."""
    return _score_of(lambda episode: Score(value=float(episode["success"])))


@metric
def share() -> Metric:
    """Invalid responses among all of them, as ``textbench run`` counts: long episodes count for more."""

    def metric(scores: list[SampleScore]) -> float:
        invalid, responses = _counts(scores)
        return float(invalid.sum() / responses.sum()) if len(scores) else 0.0

    return metric


@metric
def share_stderr() -> Metric:
    """Standard error of :func:`share`: a ratio of two sums over episodes (delta method)."""

    def metric(scores: list[SampleScore]) -> float:
        invalid, responses = _counts(scores)
        if len(scores) < 2:
            return 0.0
        residuals = (invalid - responses * invalid.sum() / responses.sum()) / responses.mean()
        return float(residuals.std(ddof=1) / np.sqrt(len(scores)))

    return metric


def _counts(scores: list[SampleScore]) -> tuple[Any, Any]:
    """``(invalid responses, responses)`` of every sample, two arrays of floats."""
    counts = [sample.score.metadata or {} for sample in scores]
    return np.array([one["invalid"] for one in counts], float), np.array([one["responses"] for one in counts], float)


@scorer(metrics=[share(), share_stderr()], name="invalid")
def invalid() -> Scorer:
    """The share of the responses that named no legal action."""

    def value(episode: dict[str, Any]) -> Score:
        wrong = sum(not response["valid"] for response in episode["responses"])
        counts = {"invalid": wrong, "responses": len(episode["responses"])}
        return Score(value=wrong / max(counts["responses"], 1), metadata=counts)

    return _score_of(value)


@scorer(metrics=[mean(), stderr()], name="failed")
def failed() -> Scorer:
    """Whether the episode failed, as 1 or 0; of all samples."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(state.store.get(EPISODE) is None))

    return score
