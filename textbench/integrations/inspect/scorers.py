"""What an episode is worth: its return, whether the goal was reached, how many responses were invalid.

An episode that failed (a provider's error) has none of these, and Inspect leaves it out of their means. That isn't
silent: every score then counts it among its ``unscored_samples``, and the share of failed episodes is a score itself.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
from inspect_ai.solver import TaskState

from textbench.integrations.inspect.solver import EPISODE


def _score_of(value: Callable[[dict[str, Any]], Score]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        episode = state.store.get(EPISODE)
        return Score.unscored(reason="the episode failed") if episode is None else value(episode)

    return score


@scorer(metrics=[mean(), stderr()], name="return")
def episode_return() -> Scorer:
    """Score the player's return, as ``textbench run`` does."""
    return _score_of(
        lambda episode: Score(
            value=episode["returns"][episode["player"]],
            explanation=f"{len(episode['responses'])} responses, returns {episode['returns']}",
        )
    )


@scorer(metrics=[mean(), stderr()], name="success")
def success() -> Scorer:
    """Score whether the player has reached its goal, as 1 or 0."""
    return _score_of(lambda episode: Score(value=float(episode["success"])))


@metric(scores="unreduced")
def share() -> Metric:
    """Divide the invalid responses by all of them, as ``textbench run`` does: long episodes count for more.

    They are those of all epochs, of which Inspect's reducers would keep the first one's counts alone.
    """

    def metric(scores: list[SampleScore]) -> float:
        invalid, responses = _counts(scores)
        return float(invalid.sum() / max(responses.sum(), 1))

    return metric


@metric(scores="unreduced")
def share_stderr() -> Metric:
    """Compute the standard error of :func:`share`: a ratio of two sums over seeds (delta method)."""

    def metric(scores: list[SampleScore]) -> float:
        invalid, responses = _counts(scores)
        if len(invalid) < 2 or not responses.any():
            return 0.0
        residuals = (invalid - responses * invalid.sum() / responses.sum()) / responses.mean()
        return float(residuals.std(ddof=1) / np.sqrt(len(invalid)))

    return metric


def _counts(scores: list[SampleScore]) -> tuple[Any, Any]:
    """Return ``(invalid responses, responses)`` of every sample; those of epochs, which have one seed, are summed."""
    counts = defaultdict[Any, Any](lambda: np.zeros(2))
    for sample in scores:
        told = sample.score.metadata or {}
        counts[sample.sample_id] += told["invalid"], told["responses"]
    invalid, responses = np.array([*counts.values()]).reshape(-1, 2).T
    return invalid, responses


@scorer(metrics=[share(), share_stderr()], name="invalid")
def invalid() -> Scorer:
    """Score the share of the responses that named no legal action."""

    def value(episode: dict[str, Any]) -> Score:
        wrong, responses = sum(not one["valid"] for one in episode["responses"]), len(episode["responses"])
        return Score(value=wrong / max(responses, 1), metadata={"invalid": wrong, "responses": responses})

    return _score_of(value)


@scorer(metrics=[mean(), stderr()], name="failed")
def failed() -> Scorer:
    """Score whether the episode failed, as 1 or 0; of all samples."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(state.store.get(EPISODE) is None))

    return score
