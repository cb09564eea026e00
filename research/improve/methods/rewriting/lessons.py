"""Lessons with conditions, each read in the states that meet it, and refined by those in which it helped or harmed.

AlphaOPT (arXiv 2510.18428): a library holds insights with conditions of applicability, and evolves by a diagnosis of
where retrieval went wrong. ``advised(AGENT, lessons:FILE)`` reads those whose condition an observation meets.

Our reading: a condition has phrases, all of which an observation holds, except for those behind ``not``, of which it
holds none. A retrieved lesson helped in a state if the move there was one of the best and harmed if it wasn't, by exact
values or the search player's; in games without either, it harmed if the episode returned less than the same seed did
before. It is missed in states in which it wasn't retrieved and a move lost.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents import Turn, TurnRequest, as_requests
from agents.analysis import TIE
from agents.common import read_toml, replacing, to_toml
from benchmark.runs import data_digest, replay_if_unchanged
from research.improve.feedback import Judge
from research.improve.plays import Play

HEADING = "Lessons from earlier games:"
SHOWN = 4  # states of a kind that the writer reads at most

NOT = "not "

REFINE = """A player of a text game reads a lesson in the states whose observations meet a condition, and in no others.

Lesson: {lesson}
Condition: {condition}

{states}

Write a condition that holds in states where the lesson helps and in no state where it harms. It has one phrase a \
line, copied from observations: an observation has to hold all of them, but none that is written behind the word not. \
No phrase at all means every state. Answer in exactly this form:
<when>
your phrases
</when>"""

KINDS = {
    "helped": "It was read, and the move was good",
    "harmed": "It was read, and the move was bad",
    "missed": "It was not read, and the move was bad",
}


class Lesson(NamedTuple):
    """A text that a player reads in the states whose observations hold these phrases; in all if there are none."""

    text: str
    when: tuple[str, ...] = ()

    def applies(self, observation: str) -> bool:
        """Report whether an observation meets the condition."""
        return all((one.removeprefix(NOT) in observation) is not one.startswith(NOT) for one in self.when)


class LessonsPlayer:
    """Answers with the lessons of a file that apply to what it sees, in their order; with nothing if none does.

    Raises:
        ValueError: the file isn't a TOML file with tables ``[[lessons]]`` of a ``text`` and phrases ``when``.
    """

    name = "lessons"

    def __init__(self, file: str) -> None:
        self.lessons = read_lessons(Path(file))
        self.settings = {"kind": self.name, "lessons": [one._asdict() for one in self.lessons]}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        seen = [request.observation for request in as_requests(requests)]
        return [Turn(told_of([lesson for lesson in self.lessons if lesson.applies(text)])) for text in seen]


def told_of(lessons: Sequence[Lesson]) -> str:
    """Return lessons as players and writers read them; nothing of none."""
    return "\n".join([HEADING, *(f"- {lesson.text}" for lesson in lessons)]) if lessons else ""


def read_lessons(file: Path) -> tuple[Lesson, ...]:
    """Return the lessons of a file; a ValueError if it holds none."""
    found = read_toml(file, f"the lessons {str(file)!r}")
    try:
        lessons = tuple(map(_lesson, found.pop("lessons")))
    except (KeyError, TypeError, AttributeError):
        lessons = ()
    if found or not lessons:
        raise ValueError(
            f'the lessons {str(file)!r} are not tables [[lessons]] with text = "..." and when = ["...", ...] alone; '
            "textbench improve library --set refine=2 writes such a file"
        )
    return lessons


def _lesson(table: dict[str, Any]) -> Lesson:
    text, when = table.pop("text"), table.pop("when", [])
    if table or not isinstance(when, list) or not all(isinstance(one, str) for one in [text, *when]):
        raise TypeError(table)
    return Lesson(text, tuple(when))


def write_lessons(folder: Path, lessons: Sequence[Lesson]) -> Path:
    """Write lessons to a file that is named after them, and return it."""
    tables = [lesson._asdict() for lesson in lessons]
    file = folder / f"{data_digest(tables)[:12]}.toml"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        for lesson in lessons:
            stream.write(f"[[lessons]]\ntext = {to_toml(lesson.text)}\nwhen = {to_toml(list(lesson.when))}\n")
    return file


def states_of(lesson: Lesson, after: Play, before: Play) -> dict[str, list[str]]:
    """Return ``{kind: observations}`` of the states in which a lesson helped, harmed or was missed, each once."""
    found = {kind: dict[str, None]() for kind in KINDS}
    judges = {name: Judge(scenario) for name, scenario in after.scenarios.items()}
    for record in after.records:
        replayed = replay_if_unchanged(record, after.scenarios[record.scenario])
        place = record.scenario, record.seed
        if replayed is None or place not in before.returns:
            continue
        lost = before.returns[place] - after.returns[place]
        moves = [(move.step, move.lost) for move in judges[record.scenario].moves(replayed)]
        for step, loss in moves or [(step, lost) for step in replayed.steps]:
            if lesson.applies(step.observation):
                found["harmed" if loss > TIE else "helped"][step.observation] = None
            elif loss > TIE:
                found["missed"][step.observation] = None
    return {kind: [*observations] for kind, observations in found.items()}


def question(lesson: Lesson, states: dict[str, list[str]]) -> str:
    """Return what the writer is asked for another condition of a lesson."""
    told = [
        f"{heading}, in {len(states[kind])} states, such as:\n\n" + "\n\n".join(states[kind][:SHOWN])
        for kind, heading in KINDS.items()
        if states[kind]
    ]
    condition = "; ".join(lesson.when) or "none, it is read in every state"
    return REFINE.format(lesson=lesson.text, condition=condition, states="\n\n".join(told))


def refined(lesson: Lesson, answer: str) -> Lesson:
    """Return the lesson with the condition in an answer; as it was if there is none."""
    found = re.findall(r"<when>(.*?)</when>", answer, re.DOTALL)
    return lesson._replace(when=tuple(filter(None, map(str.strip, found[-1].splitlines())))) if found else lesson
