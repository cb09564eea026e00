"""Prompts that evolve by reflection: GEPA (Agrawal et al., arXiv 2507.19457), by the package ``gepa``.

A language model reads episodes with their faults in words (:mod:`research.improve.feedback`) and writes a text of the
prompts anew; what does better on the same few seeds is played on all of them, and the next parent is drawn from the
Pareto front over seeds. The package draws its chances from the seed and all costs are on record, so a second call with
the same folder takes the same way, and no state of the package is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import PromptMap, PromptTexts
from benchmark import BenchmarkError, UsageError
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.feedback import Judge
from research.improve.plays import Play, means_in_common
from research.improve.prompts import in_folder, prompt_map_of, with_texts
from research.improve.questions import Questions
from research.improve.task import ImprovementTask
from textgames import missing_packages

if TYPE_CHECKING:
    from gepa import EvaluationBatch

Candidate = dict[str, str]
"""``{part: text}``, as the package calls it."""

PARTS = ("system", "opening", "response")

PLACEHOLDERS = (
    "Words that begin with a dollar sign, such as $instructions and $actions, stand for what the game says: keep those "
    "that are there, as they are, and write no others."
)


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    parts: list[str] | None = None,
    seeds: int = 30,
    batch: int = 5,
    rounds: int = 20,
) -> AgentTable:
    """Let a language model rewrite the agent's prompts.

    Args:
        task: the agent has a language model.
        writer: the agent whose language model rewrites them; the agent itself when not given.
        parts: the texts that are rewritten in turn, of ``system``, ``opening`` and ``response`` (that of the agent's
            mode, which has the form of answers); the first two if nothing is said.
        seeds: training seeds that every candidate is compared on; as many others are reflected on.
        batch: episodes that are reflected on at once.
        rounds: rewritings at most.
    """
    if (missing := missing_packages("gepa", extra="gepa")) is not None:
        raise UsageError(f"the method gepa needs {missing}")
    import gepa
    from gepa.strategies.instruction_proposal import InstructionProposalSignature

    chosen = list(dict.fromkeys(parts or PARTS[:2]))
    if wrong := [part for part in chosen if part not in PARTS]:
        raise UsageError(f"parts are of {', '.join(PARTS)}, got {wrong[0]!r}")
    evolution = _Evolution(task, prompt_map_of(task.agent), task.questions(writer), task.seeds(seeds))
    first = evolution.candidate(chosen)
    try:
        gepa.optimize(
            first,
            trainset=task.seeds(seeds, after=seeds),
            valset=list(evolution.compared),
            adapter=evolution,
            reflection_lm=evolution.reflect,
            reflection_prompt_template=f"{InstructionProposalSignature.default_prompt_template}\n\n{PLACEHOLDERS}",
            reflection_minibatch_size=min(batch, seeds),
            skip_perfect_score=False,
            stop_callbacks=lambda state: evolution.stopped is not None or state.i >= rounds - 1,
            logger=SimpleNamespace(log=lambda message: None),  # what matters is told here
            seed=task.seed,
        )
    except BudgetSpentError as spent:
        evolution.stopped = spent
    if evolution.stopped is not None:
        if not isinstance(evolution.stopped, BudgetSpentError):
            raise evolution.stopped
        task.say(str(evolution.stopped))
    return evolution.best(first)


@dataclass
class _Evolution:
    """What the package asks for: the return of candidates, and what is to be said of their episodes."""

    task: ImprovementTask
    prompts: PromptMap
    questions: Questions
    compared: Sequence[int]  # the seeds that candidates are compared on
    stopped: Exception | None = None  # what stops the reflection; the package would only log it
    # the play of every candidate on all of these, in the order in which they were played
    played: list[tuple[Candidate, Play]] = field(default_factory=list)
    propose_new_texts: None = None  # the package's own way

    def candidate(self, parts: Sequence[str]) -> Candidate:
        mode, texts = self.prompts.mode, self.prompts.texts
        own = {"system": texts.system, "opening": texts.opening, "response": texts.response[mode]}
        return {part: own[part] for part in parts}

    def agent(self, candidate: Candidate) -> AgentTable:
        """Return the agent with a candidate's texts; a ValueError if they aren't texts of prompts."""
        mode, changes = self.prompts.mode, dict[str, Any](candidate)
        if "response" in changes:
            changes["response"] = {**self.prompts.texts.response, mode: candidate["response"]}
        texts: PromptTexts = replace(self.prompts.texts, **changes)
        return with_texts(self.task.agent, texts, mode, self.task.out)

    def evaluate(self, batch: list[int], candidate: Candidate, capture_traces: bool = False) -> "EvaluationBatch":
        from gepa import EvaluationBatch

        try:
            agent = self.agent(candidate)
        except ValueError as error:  # no valid prompt: worse than anything that was played
            self.task.say(f"a candidate was no valid prompt: {error}")
            nothing = [float("-inf")] * len(batch)
            return EvaluationBatch([None] * len(batch), nothing, [str(error)] * len(batch))
        play = self.task.play(agent, batch, "gepa")
        returns: dict[int, list[float]] = {}
        for (_, seed), value in play.returns.items():
            returns.setdefault(seed, []).append(value)
        # the mean over scenarios; a seed whose episodes a provider broke off is below anything
        scores = [float(np.mean(returns[seed])) if seed in returns else float("-inf") for seed in batch]
        if sorted(batch) == sorted(self.compared):
            self.played.append((dict(candidate), play))
            self.task.say(f"candidate {len(self.played)}: mean return {play.mean:.3f} on {len(batch)} seeds")
        if not capture_traces:
            return EvaluationBatch(scores, scores, None)
        judges = {name: Judge(scenario) for name, scenario in play.scenarios.items()}
        words: dict[int, list[str]] = {seed: [] for seed in batch}
        for record in play.records:
            words[record.seed].append(judges[record.scenario].words(record))
        return EvaluationBatch(scores, scores, ["\n\n".join(words[seed]) for seed in batch])

    def make_reflective_dataset(
        self, candidate: Candidate, eval_batch: "EvaluationBatch", components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        told = [{"Feedback": words} for words in eval_batch.trajectories or ()]
        return dict.fromkeys(components_to_update, told)

    def reflect(self, prompt: str) -> str:
        try:
            return self.questions.ask(prompt)
        except (BudgetSpentError, BenchmarkError) as error:
            self.stopped = error
            raise

    def best(self, first: Candidate) -> AgentTable:
        """Return the agent of the highest mean return over the seeds that all have played; the earliest of equals."""
        if not self.played:
            return self.task.agent
        means = means_in_common([play for _, play in self.played])
        place = max(range(len(means)), key=means.__getitem__)
        candidate = self.played[place][0]
        self.task.say(f"the best of {len(means)} candidates has {means[place]:.3f}, the first had {means[0]:.3f}")
        return self.task.agent if candidate == first else in_folder(self.agent(candidate), self.task.out)
