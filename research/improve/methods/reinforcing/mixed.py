"""Mixed preference optimisation: DPO on easy pairs, then reinforcement learning on hard ones (arXiv 2403.19443).

The agent answers one prompt several times, and of two answers the better is worth more by exact values. The pairs with
the largest differences, a share of ``easy``, are easy, and the others hard. DPO learns the easy pairs. MS-GRPO then
trains that model on the layouts of the hard pairs, with ``kl_coefficient`` towards it.

Our reading: the paper tells easy from hard by a reward model's scores and trains on the hard prompts by PPO; here the
scores are exact values, and the training is on the layouts of the episodes in which hard pairs were found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.analysis import TIE
from agents.msgrpo import Iteration, configured
from agents.msgrpo.credit import Trajectory
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.methods.learning import MODEL, config_of, learnt, own_play, reinforce, trained
from research.improve.methods.preferring.preferences import NO_PAIRS, check_installed, pair_of, preferring, worth_less
from research.improve.task import ImprovementTask

HARD = "hard"
"""The folder of the training on hard layouts, in the task's."""


def improve(
    task: ImprovementTask,
    *,
    episodes: int = 200,
    attempts: int = 8,
    temperature: float = 1.0,
    easy: float = 0.5,
    beta: float = 0.1,
    sft: float = 1.0,
    rank: int = 16,
    learning_rate: float = 2e-4,
    passes: int = 4,
    iterations: int = 20,
    groups: int = 8,
    group_size: int = 8,
    rate: float = 2e-4,
    kl_coefficient: float = 0.02,
) -> AgentTable:
    """Train the agent's model on its easy preferences, and then by reinforcement on the layouts of the hard ones.

    Args:
        task: the agent has a local model, and its games tell what actions are worth.
        episodes: training seeds that the agent plays, of each scenario.
        attempts: how often it plays each of them, with other samples; two answers to one prompt are compared.
        temperature: of the agent's answers in this play and in the training.
        easy: the share of the pairs, those of the largest differences of values, that is easy; equal ones go together.
        beta: of DPO: how much it costs to leave the first model.
        sft: the weight of the likelihood of the better answers in DPO's loss.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest of DPO.
        passes: how often the model goes through the easy pairs.
        iterations: of MS-GRPO.
        groups: of an iteration, each on one hard layout.
        group_size: episodes of a group.
        rate: the learning rate of MS-GRPO.
        kl_coefficient: how much it costs to leave the model that DPO made.
    """
    check_installed("mixed")
    if not 0 < easy <= 1:
        raise UsageError(f"the option easy of mixed is above 0 and at most 1, got {easy:g}: such as easy=0.5")
    config = config_of(task, episodes, rank=rank, learning_rate=learning_rate, passes=passes)
    lines = worth_less(own_play(task, {**task.agent, "temperature": temperature}, episodes, attempts))
    gaps = np.array([line["value_chosen"] - line["value_rejected"] for line in lines])
    if not lines:
        task.say(NO_PAIRS)
        return task.agent
    is_easy = gaps >= np.quantile(gaps, 1 - easy, method="higher") - TIE
    pairs = sorted(pair_of(line) for line, plain in zip(lines, is_easy, strict=True) if plain)
    layouts: dict[str, set[int]] = {}
    for line, plain in zip(lines, is_easy, strict=True):
        if not plain:
            layouts.setdefault(line["scenario"], set()).add(line["seed"])
    hard = {name: sorted(seeds) for name, seeds in layouts.items()}
    task.say(
        f"{len(pairs):,} easy pairs of answers, {len(lines) - len(pairs):,} hard ones on "
        f"{sum(map(len, hard.values()))} layouts"
    )
    preferred = preferring(task, config, pairs, beta, sft)
    if not hard:
        task.say("all pairs are easy, so nothing is left to reinforce")
        return preferred
    sampler = f"{__name__}:{HardLayouts.__name__}"
    with task.meter.timed(HARD):
        folder = reinforce(
            replace(config, model=str(task.out / MODEL), out=str(task.out / HARD)), iterations, rate,
            groups=groups, group_size=group_size, temperature=temperature, kl_coefficient=kl_coefficient,
            task_sampling=sampler, method_settings={"tasks": {sampler: {"layouts": hard}}},
        )  # fmt: skip
    before = task.agent if preferred == task.agent else trained(task, str(task.out / MODEL))  # from here
    after = learnt(task, before, task.meter.seconds_of(HARD), folder)
    return preferred if after == before else after


@configured
class HardLayouts:
    """Plays groups on some layouts alone, drawn evenly."""

    layouts: Mapping[str, Sequence[int]] = Field(default_factory=dict)
    """The layouts of each scenario, by their seeds; a scenario without any keeps its own."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        tasks, size = iteration.tasks(), iteration.config.group_size
        for first in range(0, len(tasks), size):
            if (own := self.layouts.get(tasks[first].scenario)) is not None:
                layout = own[int(rng.integers(len(own)))]
                tasks[first : first + size] = [replace(one, layout_seed=layout) for one in tasks[first : first + size]]
        return iteration.play(tasks)
