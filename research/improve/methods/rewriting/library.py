"""A library of lessons from failed episodes, each kept only if it helps on other seeds (after AlphaOPT, arXiv
2510.18428).

A lesson is kept if, over training seeds that no lesson comes from, its mean return less that without it is above
``surety`` standard errors of that mean. The library is part of the instructions; with ``refine`` a lesson is read only
in the states that it is about (:mod:`research.improve.methods.rewriting.lessons`).
"""

import re
from collections.abc import Sequence
from pathlib import Path

from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.feedback import Judge
from research.improve.methods.rewriting.lessons import Lesson, question, refined, states_of, told_of, write_lessons
from research.improve.plays import Play, returns_in_common
from research.improve.prompts import behind_the_rules, in_folder, prompt_map_of, with_texts
from research.improve.task import ImprovementTask
from textgames.solving import standard_error

LESSONS = "lessons"
"""The folder of all lessons with conditions that were tried."""

LONGEST_LESSON = 600  # letters

QUESTION = """A player of a text game has failed. The rules that it was told:

{rules}

{library}What happened, with what its worst moves lost against the best ones:

{episode}

Write one lesson that would keep such a player from failing like this in any other start of the game: one or two plain \
sentences, about what to look at and what to do, and nothing about this one position. Answer in exactly this form:
<lesson>your lesson</lesson>"""


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    lessons: int = 5,
    tries: int = 15,
    seeds: int = 50,
    surety: float = 2.7,
    refine: int = 0,
) -> AgentTable:
    """Let a language model learn lessons from the agent's failures.

    Args:
        task: the agent has a language model.
        writer: the agent whose language model writes the lessons; the agent itself when not given.
        lessons: that are kept at most.
        tries: lessons that are tried at most.
        seeds: training seeds that each is tried on; as many others are failed on.
        surety: how many standard errors the gain of a lesson has to be above 0. One of 15 useless lessons is above 1.64
            in every third library, and above 2.7 in one of twenty.
        refine: how often the condition of a lesson is written anew, by the states in which it helped, harmed or was
            missed. Each is another try against chance, so raise the surety with it. 0 has no conditions.
    """
    if seeds < 2 or surety < 0:
        raise UsageError(f"seeds are at least 2 and surety at least 0, got seeds = {seeds} and surety = {surety:g}")
    prompts, questions = prompt_map_of(task.agent), task.questions(writer)
    library: list[Lesson] = []
    agent = task.agent

    def told(lessons: Sequence[Lesson], folder: Path = task.out) -> AgentTable:
        if not refine:
            texts = behind_the_rules(prompts.texts, told_of(lessons))
            return with_texts(task.agent, texts, prompts.mode, task.out)
        file = folder / LESSONS / write_lessons(task.out / LESSONS, lessons).name
        return {**task.agent, "spec": f"advised({task.agent['spec']}, lessons:{file})"}

    try:
        before = task.play(agent, task.seeds(seeds), "library")
        failing = task.play(agent, task.seeds(seeds, after=seeds), "failures")
        failures = [record for record in failing.records if not all(record.successes.values())]
        failures.sort(key=lambda record: failing.returns[record.scenario, record.seed])
        for number, failure in enumerate(failures[:tries], 1):
            if len(library) == lessons:
                break
            scenario = before.scenarios[failure.scenario]
            rules = scenario.game().instructions(scenario.game().players[0])
            known = f"{told_of(library)}\n\n" if library else ""
            asked = QUESTION.format(rules=rules, library=known, episode=Judge(scenario).words(failure))
            found = re.findall(r"<lesson>(.*?)</lesson>", questions.ask(asked), re.DOTALL)
            lesson = Lesson(" ".join(found[-1].split()) if found else "")
            if not 0 < len(lesson.text) <= LONGEST_LESSON or lesson.text in [one.text for one in library]:
                task.say(f"try {number}: no new lesson")
                continue
            others, tried = tuple(library), set[Lesson]()
            while lesson not in tried:
                tried.add(lesson)
                changed = told([*others, lesson])
                after = task.play(changed, task.seeds(seeds), "library")
                gain, error = compared(before, after)
                kept = gain > surety * error
                task.say(f"try {number}: {gain:+.3f}, standard error {error:.3f}, {'kept' if kept else 'dropped'}")
                without = before
                if kept:
                    library, agent, before = [*others, lesson], changed, after
                if len(tried) <= refine:
                    states = states_of(lesson, after, without)
                    if states["harmed"] or states["missed"]:
                        lesson = refined(lesson, questions.ask(question(lesson, states)))
    except BudgetSpentError as spent:
        task.say(str(spent))
    if not library:
        return task.agent
    return told(library, Path()) if refine else in_folder(agent, task.out)


def compared(before: Play, after: Play) -> tuple[float, float]:
    """Return the mean gain in return, seed by seed, and its standard error; 0 if no two seeds were played."""
    first, second = returns_in_common([before, after])
    gains = second - first
    if len(gains) < 2:
        return 0.0, 0.0
    return float(gains.mean()), standard_error(gains)
