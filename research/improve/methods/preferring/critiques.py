"""Critiques of whole trajectories by a judge, and the weighted pairs that a policy and its judge learn from."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import Prompt, TurnRequest
from benchmark.play import RunOptions
from research.improve.agents import load_table
from research.improve.budget import Spent
from research.improve.methods.imitating.offline import RecordedEpisode
from research.improve.methods.preferring.preferences import Pair
from research.improve.task import ImprovementTask

WORDS = ("good", "bad")
ASKED = "You judge the steps of a whole game. Was the last step that is asked about good or bad for its player?"


class Critique(NamedTuple):
    """A judge's word on one step."""

    prompt: Prompt
    response: str
    good: bool


class Weighted(NamedTuple):
    """A pair of answers, and its weight in the loss."""

    pair: Pair
    weight: float


Critiques = Sequence[Sequence[Sequence[Critique]]]
"""By episode, by its decisions, and by the times that the judge was asked."""


def questions_of(episode: RecordedEpisode, seed: tuple[int, ...]) -> list[TurnRequest]:
    """Return what a judge is asked of each step: the whole episode's actions, and what stood there."""
    actions = ", ".join(one.action for one in episode.decisions)
    begin = episode.decisions[0].request.observation
    return [
        TurnRequest(
            f"{begin}\nActions: {actions}\nStep {at}:\n{one.request.observation}\nAction: {one.action}",
            instructions=ASKED,
            legal_actions=WORDS,
            seed=(*seed, at),
        )
        for at, one in enumerate(episode.decisions, 1)
    ]


def critiques_of(
    critic: ImprovementTask, episodes: Sequence[RecordedEpisode], times: int, temperature: float, number: int
) -> Critiques:
    """Ask a judge so many times about every step, and charge what that costs."""
    policy, _ = load_table({**critic.agent, "legal_only": True, "temperature": temperature}, RunOptions())
    asked = [
        [questions_of(one, (critic.seed, number, at, time)) for time in range(times)] for at, one in enumerate(episodes)
    ]
    turns = iter(policy.act([question for own in asked for row in own for question in row]))
    found = []
    for own in asked:
        rows = []
        for row in own:
            answers = [next(turns) for _ in row]
            tokens = sum(turn.paid.prompt_tokens + turn.paid.completion_tokens for turn in answers)
            critic.meter.charge(Spent(tokens, len(answers)))
            rows.append([Critique(turn.prompt, turn.response, f">{WORDS[0]}<" in turn.response) for turn in answers])
        found.append([*zip(*rows, strict=True)])
    return found


def agreement(advantages: Sequence[float], critiques: Critiques) -> float:
    """Return the share of critiques that agree with the outcome: good in an episode better than its seed's others."""
    told = [
        one.good == (advantage > 0)
        for advantage, steps in zip(advantages, critiques, strict=True)
        for step in steps
        for one in step
        if advantage
    ]
    return float(np.mean(told)) if told else 0.0


def policy_pairs(
    episodes: Sequence[RecordedEpisode], advantages: Sequence[float], critiques: Critiques, weight: float
) -> list[Weighted]:
    """Return each answer that scores less than another to the same prompt, beside the best, and by how much."""
    answers: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for episode, advantage, steps in zip(episodes, advantages, critiques, strict=True):
        for one, step in zip(episode.decisions, steps, strict=True):
            score = advantage + weight * float(np.mean([2.0 * each.good - 1.0 for each in step]))
            place = episode.scenario, one.prompt, one.request.steps_left
            answers.setdefault(place, {}).setdefault(one.response, []).append(score)
    pairs = []
    for (_, prompt, _), given in answers.items():
        means = {response: float(np.mean(scores)) for response, scores in given.items()}
        best = max(means, key=lambda response: means[response])
        pairs += [
            Weighted(Pair(prompt, best, response), means[best] - mean)
            for response, mean in means.items()
            if mean < means[best]
        ]
    return pairs


def judge_pairs(advantages: Sequence[float], critiques: Critiques) -> list[Weighted]:
    """Return of each step on which critiques differ the one that agrees with the outcome, beside the other."""
    pairs = []
    for advantage, steps in zip(advantages, critiques, strict=True):
        for step in steps:
            words = {one.good: one for one in step}
            if advantage and len(words) == 2:
                right, wrong = words[advantage > 0], words[advantage <= 0]
                pairs.append(Weighted(Pair(right.prompt, right.response, wrong.response), abs(advantage)))
    return pairs


def drawn(pairs: Sequence[Weighted], rng: np.random.Generator) -> list[Pair]:
    """Draw as many pairs as there are, with chances in proportion to their weights."""
    weights = np.array([one.weight for one in pairs])
    return [pairs[at].pair for at in rng.choice(len(pairs), len(pairs), p=weights / weights.sum())]
