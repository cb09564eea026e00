"""TriMPI: a document of the policy is learnt into the weights, and the player then plays without it (arXiv 2510.09474).

Three stages: a warm start on the document's own lines; imitation of the agent that has the document in its prompts, by
prompts without it; and MS-GRPO, in which a share of each group is played with the document and learnt without
(the paper's rollout augmentation). The agent is compared with what it was, neither having the document.

Our reading: the paper's documents have pictures, and what it imitates are chains of thought; here it is a text, and
every valid answer is imitated. In the last stage the learner takes an answer that was given with the document as one of
its own without it, whose probabilities it computes.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, Message, PromptMap, request_in
from agents.msgrpo import ConfigError, Iteration, configured
from agents.msgrpo.credit import Batch, Trajectory, local_policy, refuse_history, task_of
from agents.msgrpo.warmup import Demonstrations, TaughtDecision, taught
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.methods import learning
from research.improve.methods.imitating.offline import recorded
from research.improve.prompts import prompt_map_of, with_texts
from research.improve.task import ImprovementTask

HEAD = "The document of the policy."
CONTENT, REINFORCED = "content", "reinforced"  # the folders of the first and the last stage, in the task's


def improve(
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
    told, before = text_of(document), prompt_map_of(task.agent)
    if not 0 <= share <= 1:
        raise UsageError(f"the option share of internalise is from 0 to 1, got {share:g}: such as share=0.5")
    lines, reader = [line for line in told.splitlines() if line.strip()], with_document(task, before, told)
    folders = learning.own_play(task, reader, episodes, attempts)
    found = recorded(folders, task.scenarios, before.mode, apart=frozenset(learning.compared_seeds(task)))
    decisions = [one for episode in found for one in episode.decisions]
    config = learning.config_of(task, len(decisions), rank=rank, learning_rate=learning_rate, passes=passes)
    first = replace(config, out=str(task.out / CONTENT), minibatches=len(lines))
    heads = ["\n".join([HEAD, *lines[:place]]) for place in range(len(lines))]
    content = [TaughtDecision((Message("user", head),), line) for head, line in zip(heads, lines, strict=True)]

    def answers(prompt_map: PromptMap) -> Demonstrations:
        return [TaughtDecision(prompt_map(one.request), one.response) for one in decisions], []

    task.say(f"{len(lines)} lines of the document, and {len(decisions):,} decisions of {len(found)} episodes with it")
    with learning.said_as_usage():
        spent = taught(first, {"document": told}, lambda _: (content, []), task.say)["seconds"]
        spent += taught(replace(config, model=first.out), {"document": told}, answers, task.say)["seconds"]
    with task.meter.timed(REINFORCED):
        sampler = f"{__name__}:{WithDocument.__name__}"
        folder = learning.reinforce(
            replace(config, model=str(task.out / learning.MODEL), out=str(task.out / REINFORCED)), iterations, rate,
            groups=groups, group_size=group_size, task_sampling=sampler,
            method_settings={"tasks": {sampler: {"document": told, "share": share}}},
        )  # fmt: skip
    with task.meter.without_limits():
        read = task.play(reader, learning.compared_seeds(task), "with")
    task.say(f"with the document: {read.mean:.3f} on training episodes")
    return learning.learnt(task, task.agent, spent + task.meter.seconds_of(REINFORCED), folder)


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
