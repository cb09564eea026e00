"""How a model plays, in figures for its card: success, return, invalid responses, and how true its reasoning is."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.common.intervals import Array, Estimate, percentiles
from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from agents.protocol import STANDARD
from agents.turn import Policy
from research.tiny.statements import check
from textgames.scenarios import SCENARIOS

_RESAMPLES = 2000


class Figures(NamedTuple):
    """One player on one scenario.

    ``truth`` is the share of true statements among all parts of the reasoning, ``nan`` for players whose reasoning has
    no statements.
    """

    agent: str
    scenario: str
    episodes: int
    success: Estimate
    returned: Estimate
    invalid: Estimate
    length: Estimate
    truth: float


def evaluate(policy: Policy, scenario: str, episodes: int) -> Figures:
    """Play a scenario's first episodes with one policy for all players; the figures are player 0's."""
    chosen = SCENARIOS[scenario]
    tasks = [EpisodeTask.of(chosen, chosen.seed(episode), protocol=STANDARD["protocol"]) for episode in range(episodes)]
    played = sorted(rollout(policy, tasks, max_concurrency=128), key=lambda episode: episode.seed)
    player = next(iter(played[0].returns))
    steps = [episode.steps_of(player) for episode in played]
    lengths = np.array([len(one) for one in steps], float)
    invalid = np.array([sum(not step.valid for step in one) for one in steps], float)
    return Figures(
        policy.name,
        scenario,
        episodes,
        _mean(np.array([episode.successes[player] for episode in played], float)),
        _mean(np.array([episode.returns[player] for episode in played])),
        _mean(invalid, lengths),
        _mean(lengths),
        _truth(played),
    )


def _mean(values: Array, weights: Array | None = None) -> Estimate:
    """Mean over episodes (with weights: ratio of sums) and its percentile bootstrap interval."""
    weights = np.ones_like(values) if weights is None else weights
    picks = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    means = values[picks].sum(1) / weights[picks].sum(1)
    return Estimate(float(values.sum() / weights.sum()), *percentiles(means))


def _truth(episodes: Sequence[Episode]) -> float:
    counts = [
        check(step.turn.response, step.observation)
        for episode in episodes
        for step in episode.steps
        if "<think>" in step.turn.response
    ]
    stated = sum(count.true + count.false for count in counts)
    return sum(count.true for count in counts) / sum(sum(count) for count in counts) if stated else math.nan


def table(figures: Sequence[Figures]) -> str:
    """The figures in Markdown, for a model's card."""
    lines = [
        "Mean and 95% bootstrap interval over episodes; player 0's where there are several players.",
        "",
        "| scenario | agent | episodes | success | return | invalid | length | true statements |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in figures:
        truth = "-" if one.truth != one.truth else f"{one.truth:.1%}"
        lines.append(
            f"| {one.scenario} | {one.agent} | {one.episodes} | {one.success:.3f} | {one.returned:.3f} "
            f"| {one.invalid:.3f} | {one.length:.3f} | {truth} |"
        )
    return "\n".join(lines)
