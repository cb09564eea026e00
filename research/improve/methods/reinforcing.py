"""Improvers that end in MS-GRPO, from preferences (``mixed``) or from a document (``internalise``)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, Message, PromptMap, request_in
from agents.analysis import TIE
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Batch, Trajectory, local_policy, refuse_history, task_of
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.agents import prompt_map_of, with_texts
from research.improve.methods import learning
from research.improve.methods.imitating import recorded
from research.improve.methods.learning import MODEL, config_of, learnt, own_play, reinforce, trained
from research.improve.methods.preferences import NO_PAIRS, check_installed, pair_of, preferring, worth_less
from research.improve.task import ImprovementTask

if TYPE_CHECKING:
    from agents.msgrpo.warmup import Demonstrations

HARD = "hard"
"""The folder of the training on hard layouts, in the task's."""


def mixed(
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

    Mixed preference optimisation (arXiv 2403.19443): of two answers to a prompt the better is worth more by exact
    values. The pairs with the largest differences, a share of ``easy``, are learnt by DPO; MS-GRPO then trains that
    model on the layouts of the others. Our reading: the paper tells easy from hard by a reward model's scores and
    trains on the hard prompts by PPO.

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
    with task.meter.spending(HARD):
        folder = reinforce(
            replace(config, model=str(task.out / MODEL), out=str(task.out / HARD)), iterations, rate,
            groups=groups, group_size=group_size, temperature=temperature, kl_coefficient=kl_coefficient,
            task_sampling=sampler, method_settings={"tasks": {sampler: {"layouts": hard}}},
        )  # fmt: skip
    before = task.agent if preferred == task.agent else trained(task, str(task.out / MODEL))  # from here
    after = learnt(task, before, folder)
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


HEAD = "The document of the policy."
CONTENT, REINFORCED = "content", "reinforced"  # the folders of the first and the last stage, in the task's


def internalise(
    task: ImprovementTask,
    *,
    document: str | None = None,
    episodes: int = 200,
    attempts: int = 4,
    share: float = 0.5,
    rank: int = 16,
    learning_rate: float | None = None,
    passes: int = 1,
    iterations: int = 20,
    groups: int = 8,
    group_size: int = 8,
    rate: float = 2e-4,
) -> AgentTable:
    """Teach the agent's model what it does with a document in its prompts.

    TriMPI (arXiv 2510.09474) has three stages: a warm start on the document's own lines; imitation of the agent that
    has the document in its prompts, by prompts without it; and MS-GRPO, in which a share of each group is played with
    the document and learnt without (rollout augmentation). The agent is compared with what it was, neither having the
    document. Our reading: the paper's documents have pictures, and what it imitates are chains of thought; here it is a
    text, and every valid answer is imitated. In the last stage the learner takes an answer that was given with the
    document as one of its own without it, whose probabilities it computes.

    Args:
        task: the agent has a local model.
        document: a text file.
        episodes: training seeds that the agent plays with the document, of each scenario.
        attempts: how often it plays each of them, with other samples.
        share: of a group's episodes in MS-GRPO, those played with the document.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest of the first two stages; 1e-3 for an adapter and 1e-4 for all weights by default.
        passes: how often the model goes through the lines, and through the decisions.
        iterations: of MS-GRPO.
        groups: of an iteration.
        group_size: episodes of a group.
        rate: the learning rate of MS-GRPO.
    """
    from agents.msgrpo.warmup import TaughtDecision

    told, before = text_of(document), prompt_map_of(task.agent)
    if not 0 <= share <= 1:
        raise UsageError(f"the option share of internalise is from 0 to 1, got {share:g}: such as share=0.5")
    lines, reader = [line for line in told.splitlines() if line.strip()], with_document(task, before, told)
    folders = learning.own_play(task, reader, episodes, attempts)
    found = recorded(folders, task.scenarios, before.mode, apart=learning.compared_seeds(task))
    decisions = [one for episode in found for one in episode.decisions]
    config = learning.config_of(task, len(decisions), rank=rank, learning_rate=learning_rate, passes=passes)
    first = replace(config, out=str(task.out / CONTENT), minibatches=len(lines))
    heads = ["\n".join([HEAD, *lines[:place]]) for place in range(len(lines))]
    content = [TaughtDecision((Message("user", head),), line) for head, line in zip(heads, lines, strict=True)]

    def answers(prompt_map: PromptMap) -> "Demonstrations":
        return [TaughtDecision(prompt_map(one.request), one.response) for one in decisions], []

    task.say(f"{len(lines)} lines of the document, and {len(decisions):,} decisions of {len(found)} episodes with it")
    learning.teach(task, first, {"document": told}, lambda _: (content, []))
    learning.teach(task, replace(config, model=first.out), {"document": told}, answers)
    with task.meter.spending(REINFORCED):
        sampler = f"{__name__}:{WithDocument.__name__}"
        folder = learning.reinforce(
            replace(config, model=str(task.out / learning.MODEL), out=str(task.out / REINFORCED)), iterations, rate,
            groups=groups, group_size=group_size, task_sampling=sampler,
            method_settings={"tasks": {sampler: {"document": told, "share": share}}},
        )  # fmt: skip
    with task.meter.without_limits():
        read = task.play(reader, learning.compared_seeds(task), "with")
    task.say(f"with the document: {read.mean:.3f} on training episodes")
    return learning.learnt(task, task.agent, folder)


def text_of(document: str | None) -> str:
    """Return the text of a file; a UsageError if there is none, or nothing in it."""
    wanted = "name a text file that says how to play: --set document=FILE"
    try:
        told = Path(document).read_text(encoding="utf-8").strip() if document else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"document = {document!r} can't be read ({error}): {wanted}") from None
    if not told:
        raise UsageError(f"document = {document!r} tells nothing: {wanted}")
    return told


def with_document(task: ImprovementTask, prompts: PromptMap, told: str) -> AgentTable:
    """Return the agent with the document above each observation, as a hint stands there."""
    above = told.replace("$", "$$") + "\n\n$observation"
    texts = replace(prompts.texts, observation=prompts.texts.observation.replace("$observation", above))
    return with_texts(task.agent, texts, prompts.mode, task.out)


@configured
class WithDocument:
    """Plays a share of each group with a document in the prompts, and returns all of it with prompts without."""

    document: str = ""
    """The text that stands above the observation."""
    share: float = Field(0.5, ge=0, le=1)
    """The share of a group's episodes that are played with it."""

    needs: ClassVar[frozenset[str]] = frozenset()
    asks_alone: ClassVar[bool] = True

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        refuse_history(iteration.rollouts.policy)
        size = iteration.config.group_size
        reading, alone = list[EpisodeTask](), list[EpisodeTask]()
        for place, task in enumerate(iteration.tasks()):
            (reading if place % size < round(self.share * size) else alone).append(task)
        read = self.without(iteration, iteration.play(reading, lambda _: self.document)) if reading else []
        return [*read, *(iteration.play(alone) if alone else [])]

    def without(self, iteration: Iteration, played: Sequence[Trajectory]) -> list[Trajectory]:
        """Return trajectories with the prompts as they would have been; the learner computes their probabilities."""
        policy = local_policy(Batch(played, iteration.rollouts))
        if policy is None:
            raise ConfigError("internalise needs a model in this process, got an engine elsewhere: engine = 'live'")
        model, found = cast(Any, policy.model), []
        for each in played:
            game = textgames.parallel_env(task_of(each).env_id, **task_of(each).kwargs).game
            pairs = zip(each.states, each.steps_left, strict=True)
            asked = [policy.prompt_map(request_in(game, state, each.player, left)) for state, left in pairs]
            found.append(replace(each, prompt_ids=tuple(map(tuple, model.encode(asked))), old_logprobs=None))
        return found
