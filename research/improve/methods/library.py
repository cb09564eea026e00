"""A library of lessons from failed episodes, each kept only if it helps on other seeds (after AlphaOPT, arXiv
2510.18428).

A lesson is kept if, over training seeds that no lesson comes from, its mean return less that without it is above
``surety`` standard errors of that mean. The library is part of the instructions.
"""

import re
from collections.abc import Sequence

from agents import Episode, PromptMap
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.feedback import Judge
from research.improve.plays import Play, returns_in_common
from research.improve.prompts import behind_the_rules, in_folder, prompt_map_of, with_texts
from research.improve.task import ImprovementTask
from textgames.solving import standard_error

HEADING = "Lessons from earlier games:"
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
    """
    if seeds < 2 or surety < 0:
        raise UsageError(f"seeds are at least 2 and surety at least 0, got seeds = {seeds} and surety = {surety:g}")
    prompts, questions = prompt_map_of(task.agent), task.questions(writer)
    library: list[str] = []
    agent = task.agent
    try:
        before = task.play(agent, task.seeds(seeds), "library")
        failures = _failures(task.play(agent, task.seeds(seeds, after=seeds), "failures"))
        for number in range(min(tries, len(failures)) if failures else 0):
            if len(library) == lessons:
                break
            told = Judge(before.scenarios[failures[number].scenario])
            answer = questions.ask(_question(told, failures[number], library))
            lesson = _lesson(answer)
            if lesson is None or lesson in library:
                task.say(f"try {number + 1}: no new lesson")
                continue
            tried = _with_library(task, prompts, [*library, lesson])
            after = task.play(tried, task.seeds(seeds), "library")
            gain, error = compared(before, after)
            kept = gain > surety * error
            task.say(f"try {number + 1}: {gain:+.3f}, standard error {error:.3f}, {'kept' if kept else 'dropped'}")
            if kept:
                library, agent, before = [*library, lesson], tried, after
    except BudgetSpentError as spent:
        task.say(str(spent))
    return in_folder(agent, task.out) if library else task.agent


def compared(before: Play, after: Play) -> tuple[float, float]:
    """Return the mean gain in return, seed by seed, and its standard error; 0 if no two seeds were played."""
    first, second = returns_in_common([before, after])
    gains = second - first
    if len(gains) < 2:
        return 0.0, 0.0
    return float(gains.mean()), standard_error(gains)


def _failures(play: Play) -> list[Episode]:
    """Return the episodes that a player didn't succeed in, the lowest returns first."""
    failed = [record for record in play.records if not all(record.successes.values())]
    return sorted(failed, key=lambda record: play.returns[record.scenario, record.seed])


def _question(judge: Judge, record: Episode, library: Sequence[str]) -> str:
    game = judge.scenario.game()
    known = f"{HEADING}\n{_listed(library)}\n\n" if library else ""
    return QUESTION.format(rules=game.instructions(game.players[0]), library=known, episode=judge.words(record))


def _lesson(answer: str) -> str | None:
    """Return what an answer teaches, in one line; ``None`` if it hasn't the form, or is too long."""
    found = re.findall(r"<lesson>(.*?)</lesson>", answer, re.DOTALL)
    lesson = " ".join(found[-1].split()) if found else ""
    return lesson if 0 < len(lesson) <= LONGEST_LESSON else None


def _listed(library: Sequence[str]) -> str:
    return "\n".join(f"- {lesson}" for lesson in library)


def _with_library(task: ImprovementTask, prompts: PromptMap, library: Sequence[str]) -> AgentTable:
    texts = behind_the_rules(prompts.texts, f"{HEADING}\n{_listed(library)}")
    return with_texts(task.agent, texts, prompts.mode, task.out)
