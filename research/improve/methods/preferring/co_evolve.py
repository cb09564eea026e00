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
from typing import Any

import numpy as np

from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import Spent
from research.improve.methods.imitating.offline import EQUAL, RecordedEpisode, recorded
from research.improve.methods.learning import MODEL, compared_seeds, config_of, learnt, own_play, trained
from research.improve.methods.preferring.critiques import agreement, critiques_of, drawn, judge_pairs, policy_pairs
from research.improve.methods.preferring.preferences import check_installed, prefer
from research.improve.task import ImprovementTask


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
        found = recorded(folders, task.scenarios, configs[0].response_mode, apart=frozenset(compared_seeds(task)))
        advantages = advantages_of(found)
        if not np.any(advantages):
            task.say(EQUAL)
            break
        with task.meter.timed(f"round-{number}"):
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
        task.meter.charge(Spent(seconds=task.meter.seconds_of(f"round-{number}")))
        if pairs[0]:
            folder = f"{MODEL}-{number}"
            policy = replace(policy, agent=trained(task, str(task.out / folder)))
        if pairs[1]:
            critic = replace(critic, agent={"spec": f"hf:{task.out / f'judge-{number}'}", "mode": "direct"})
    return learnt(task, task.agent, 0.0, folder) if folder else task.agent


def advantages_of(episodes: Sequence[RecordedEpisode]) -> list[float]:
    """Return how much each episode's return is above the mean of its seed, in standard deviations of all returns."""
    of_seed: dict[tuple[str, int], list[float]] = {}
    for one in episodes:
        of_seed.setdefault((one.scenario, one.seed), []).append(one.result)
    spread = float(np.std([one.result for one in episodes])) or 1.0
    return [(one.result - float(np.mean(of_seed[one.scenario, one.seed]))) / spread for one in episodes]
