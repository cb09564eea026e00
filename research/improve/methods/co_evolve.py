"""A policy and a judge of its trajectories that improve each other, by weighted DPO.

StepORLM (arXiv 2509.22558): the outcome of a trajectory, which is certain, and a generative reward model's critique of
all its steps align the policy together, and the critic learns along. In each round the agent plays, the judge reads
every trajectory as a whole and says ``good`` or ``bad`` of each step several times, and with the advantage ``A`` of an
episode over the others of its seed, in standard deviations: ::

    score(step) = A + critique (share of good - share of bad)

The policy prefers the answer of the larger score to another one to the same prompt, with the difference as the weight;
the judge prefers the critique of a step that agrees with the sign of A to one that doesn't, with ``|A|`` as the weight.
Our reading: a critique is a word a step, to which the judge's answers are held, and weights are shares of the draws of
pairs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from agents import Prompt, TurnRequest
from benchmark import UsageError
from benchmark.play import AgentTable, RunOptions
from research.improve.agents import load_table
from research.improve.budget import Spent
from research.improve.methods.imitating import EQUAL, recorded
from research.improve.methods.learning import MODEL, compared_seeds, config_of, learnt, own_play, trained
from research.improve.methods.preferences import Pair, check_installed, prefer
from research.improve.methods.weighing import RecordedEpisode
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


def improve(
    task: ImprovementTask,
    *,
    judge: str | None = None,
    rounds: int = 2,
    episodes: int = 100,
    attempts: int = 4,
    critiques: int = 2,
    critique: float = 1.0,
    temperature: float = 1.0,
    beta: float = 0.1,
    sft: float = 1.0,
    rank: int = 16,
    learning_rate: float = 2e-4,
    passes: int = 4,
) -> AgentTable:
    """Train the agent's model and a judge of its trajectories on preferences that each makes of the other's answers.

    Args:
        task: the agent has a local model.
        judge: the local model that judges, in weights of its own; that of the agent when not given.
        rounds: of play, critique and both trainings.
        episodes: training seeds that the agent plays in a round, of each scenario.
        attempts: how often it plays each of them, with other samples.
        critiques: of each step.
        critique: the weight of the judge's word beside the outcome.
        temperature: of the agent's and the judge's answers.
        beta: of DPO: how much it costs to leave the model of the round before.
        sft: the weight of the likelihood of the better answers in the loss.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest.
        passes: how often each model goes through its pairs.
    """
    check_installed("co-evolve")
    if rounds < 1 or critique < 0 or temperature <= 0:
        raise UsageError(
            "rounds is at least 1, critique at least 0 and temperature above 0, got "
            f"rounds = {rounds}, critique = {critique:g} and temperature = {temperature:g}"
        )
    policy, critic = task, replace(task, agent={"spec": judge or task.agent["spec"], "mode": "direct"})
    rng, folder = np.random.default_rng(task.seed), ""
    for number in range(1, rounds + 1):
        settings: dict[str, Any] = {"rank": rank, "learning_rate": learning_rate, "passes": passes}
        configs = [config_of(one, episodes, **settings) for one in (policy, critic)]
        folders = own_play(policy, {**policy.agent, "temperature": temperature}, episodes, attempts, needed=number == 1)
        if not folders:
            break
        found = recorded(folders, task.scenarios, configs[0].response_mode, apart=compared_seeds(task))
        advantages = advantages_of(found)
        if not np.any(advantages):
            task.say(EQUAL)
            break
        with task.meter.spending(f"round-{number}"):
            said = critiques_of(critic, found, critiques, temperature, number)
            pairs = policy_pairs(found, advantages, said, critique), judge_pairs(advantages, said)
            task.say(
                f"round {number}: {len(pairs[0])} pairs of answers, {len(pairs[1])} of critiques, of which "
                f"{agreement(advantages, said):.0%} agree with the outcome"
            )
            for name, config, own in zip((MODEL, "judge"), configs, pairs, strict=True):
                if own:
                    out = str(task.out / f"{name}-{number}")
                    prefer(replace(config, out=out), drawn(own, rng), beta, sft)
        if pairs[0]:
            folder = f"{MODEL}-{number}"
            policy = replace(policy, agent=trained(task, str(task.out / folder)))
        if pairs[1]:
            critic = replace(critic, agent={"spec": f"hf:{task.out / f'judge-{number}'}", "mode": "direct"})
    return learnt(task, task.agent, folder) if folder else task.agent


def advantages_of(episodes: Sequence[RecordedEpisode]) -> list[float]:
    """Return how much each episode's return is above the mean of its seed, in standard deviations of all returns."""
    of_seed: dict[tuple[str, int], list[float]] = {}
    for one in episodes:
        of_seed.setdefault((one.scenario, one.seed), []).append(one.result)
    spread = float(np.std([one.result for one in episodes])) or 1.0
    return [(one.result - float(np.mean(of_seed[one.scenario, one.seed]))) / spread for one in episodes]
