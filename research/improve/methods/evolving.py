"""Texts and settings of a player that evolve: prompts by reflection (``gepa``), and all settings (``evolve``)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import PromptMap, PromptTexts, check_spec, options_taken
from agents.common import read_setting
from benchmark import BenchmarkError, UsageError, unknown_name
from benchmark.play import AgentTable, typed_option
from research.improve.agents import Questions, in_folder, prompt_map_of, with_texts
from research.improve.budget import BudgetSpentError
from research.improve.methods.library import Judge, compared
from research.improve.task import ImprovementTask, Play, means_in_common
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


def gepa(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    parts: list[str] | None = None,
    seeds: int = 30,
    batch: int = 5,
    rounds: int = 20,
) -> AgentTable:
    """Let a language model rewrite the agent's prompts: GEPA (Agrawal et al., arXiv 2507.19457), by its package.

    A language model reads episodes with their faults in words and writes a text of the prompts anew; what does better
    on the same few seeds is played on all of them, and the next parent is drawn from the Pareto front over seeds. The
    package draws its chances from the seed and all costs are on record, so a second call with the same folder takes the
    same way, and no state of the package is kept.

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
    """The adapter that the package asks for: the return of candidates, and words about their episodes."""

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


Genome = Mapping[str, Any]  # {setting: value} of those that aren't the agent's own
CHOICES = ("temperature=0.0", "temperature=0.5", "temperature=1.0", "mode=direct", "mode=think", "spec=search(AGENT)")
TEXT = "system"  # the setting that a writer makes
SHOWN = 3  # episodes that it reads
_STREAM = 0xE701  # keeps these draws apart from those of the seeds

QUESTION = """The system message of a player of a text game is:

```
{text}
```

Its worst episodes:

{episodes}

Write a system message with which it plays better in any other start of the game, between lines of ``` alone."""


def evolve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    choices: list[str] | None = None,
    children: int = 24,
    parents: int = 4,
    seeds: int = 50,
    surety: float = 2.0,
) -> AgentTable:
    """Let all settings of an agent evolve together: its text, how it samples, its mode, and the players around it.

    ARTEMIS (arXiv 2512.09108) evolves agents' configurations by crossover and mutation under a budget. A genome has the
    settings that aren't the agent's own. A child takes each from one of two parents, drawn from the best on common
    seeds, and one of them anew: another choice, or a text that a writer makes of episodes with their faults in words.
    Our reading: the highest mean of many is partly luck, so its genome is handed back only if it gains on other seeds.

    Args:
        task: the agent.
        writer: the agent whose language model writes the system message anew; without one, settings evolve alone.
        choices: OPTION=VALUE, as --set takes it, besides the agent's own values; those of ``spec`` are players around
            it, whose options may change, too. Three temperatures, two modes and a search if nothing is said.
        children: how many genomes are made at most.
        parents: how many of the best so far parents are drawn from.
        seeds: training seeds that all are compared on; the best one plays as many others, and so does the agent.
        surety: how many standard errors its gain there has to be above 0.
    """
    if seeds < 2 or surety < 0:
        raise UsageError(f"seeds are at least 2 and surety at least 0, got seeds = {seeds} and surety = {surety:g}")
    space = space_of(str(task.agent["spec"]), CHOICES if choices is None else choices)
    questions = None if writer is None else task.questions(writer)
    if questions is not None:
        space[TEXT] = [prompt_map_of(task.agent).texts.system]
    names, rng, known = sorted(space), np.random.default_rng([_STREAM, task.seed]), list[Genome]([{}])
    try:
        tried: list[tuple[Genome, Play]] = [({}, task.play(task.agent, task.seeds(seeds), "evolve"))]
        while len(known) <= children and task.meter.reaches(len(tried), 3):  # two of them are the comparison
            best = ranked(tried)[:parents]
            (mother, play), (father, _) = (best[int(rng.integers(len(best)))] for _ in range(2))
            child = crossed(mother, father, names, rng)
            name = str(rng.choice(names))
            if name == TEXT and questions is not None:
                text = str(child.get(TEXT, space[TEXT][0]))
                answer = questions.ask(QUESTION.format(text=text, episodes=worst_of(play)))
                found = re.findall(r"^```\w*\n(.*?)\n```", answer, re.DOTALL | re.MULTILINE)
                child[TEXT] = found[-1].strip() if found else text
            else:
                child[name] = space[name][int(rng.integers(len(space[name])))]
            known.append(child)
            try:
                if child not in known[:-1]:
                    tried.append((child, task.play(agent_of(task.agent, child), task.seeds(seeds), "evolve")))
                    task.say(f"{_shown(child)}: mean return {tried[-1][1].mean:.3f}")
            except UsageError as error:  # settings that don't go together
                task.say(f"{_shown(child)} can't play: {error}")
        fittest, _ = ranked(tried)[0]
        if fittest:
            made, others = agent_of(task.agent, fittest), task.seeds(seeds, after=seeds)
            gain, spread = compared(task.play(task.agent, others, "before"), task.play(made, others, "after"))
            task.say(f"{_shown(fittest)} on {seeds} other seeds: {gain:+.3f}, standard error {spread:.3f}")
            if gain > surety * spread:
                return made
    except BudgetSpentError as spent:
        task.say(str(spent))
    return task.agent


def space_of(spec: str, choices: Sequence[str]) -> dict[str, list[Any]]:
    """Return ``{setting: values}``, typed as options of the agent and of players around it; a UsageError for others."""
    given = [read_setting(text, "OPTION=VALUE in choices", UsageError) for text in choices]
    space, taken = dict[str, list[Any]](), dict[str, Any](spec=str)
    try:
        for form in ("AGENT", *(str(value) for name, value in given if name == "spec")):
            check_spec(form.replace("AGENT", spec))
            taken |= options_taken(form.replace("AGENT", spec))[0]
    except ValueError as error:
        raise UsageError(f"choices: {error}") from None
    for name, value in given:
        if name not in taken:
            raise unknown_name("setting in choices", name, taken)
        space.setdefault(name, []).append(typed_option(f"the choice {name}", value, taken[name]))
    return space


def agent_of(agent: AgentTable, genome: Genome) -> AgentTable:
    """Return the agent with other settings; those that its players don't take are left out."""
    spec = str(genome.get("spec", "AGENT")).replace("AGENT", str(agent["spec"]))
    taken = options_taken(spec)[0]
    return {**agent, **{name: value for name, value in genome.items() if name in taken}, "spec": spec}


def ranked(tried: Sequence[tuple[Genome, Play]]) -> list[tuple[Genome, Play]]:
    """Return genomes with their plays from the highest mean return to the lowest, the earlier first of equals."""
    means = means_in_common([play for _, play in tried])
    return [tried[place] for place in sorted(range(len(tried)), key=lambda place: -means[place])]


def crossed(mother: Genome, father: Genome, names: Sequence[str], rng: np.random.Generator) -> dict[str, Any]:
    """Return a child that has each setting from one of its parents, with equal chances."""
    parents = {name: (mother, father)[int(rng.integers(2))] for name in names}
    return {name: parent[name] for name, parent in parents.items() if name in parent}


def worst_of(play: Play) -> str:
    """Return the episodes of the lowest returns, with their faults in words."""
    worst = sorted(play.records, key=lambda one: play.returns[one.scenario, one.seed])[:SHOWN]
    return "\n\n".join(Judge(play.scenarios[record.scenario]).words(record) for record in worst)


def _shown(genome: Genome) -> str:
    return ", ".join(f"{name} = {str(value)[-60:]}" for name, value in genome.items())
