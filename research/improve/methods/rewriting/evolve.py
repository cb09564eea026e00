"""All settings of an agent evolve together: its text, how it samples, its mode, and the players around it.

ARTEMIS (arXiv 2512.09108) evolves agents' configurations by crossover and mutation under a budget. A genome has the
settings that aren't the agent's own. A child takes each from one of two parents, drawn from the best on common seeds,
and one of them anew: another choice, or a text that a writer makes of episodes with their faults in words. Our reading:
the highest mean of many is partly luck, so its genome is handed back only if it gains on other seeds, too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents import check_spec, options_taken
from agents.common import read_setting
from benchmark import UsageError, unknown_name
from benchmark.play import AgentTable, typed_option
from research.improve.budget import BudgetSpentError
from research.improve.feedback import Judge
from research.improve.methods.rewriting.library import compared
from research.improve.plays import Play, means_in_common
from research.improve.prompts import prompt_map_of
from research.improve.task import ImprovementTask

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


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    choices: list[str] | None = None,
    children: int = 24,
    parents: int = 4,
    seeds: int = 50,
    surety: float = 2.0,
) -> AgentTable:
    """Let all settings of an agent evolve together.

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
