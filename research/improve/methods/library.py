"""A library of lessons from failed episodes, each kept only if it helps on other seeds (after AlphaOPT, arXiv
2510.18428).

A lesson is kept if, over training seeds that no lesson comes from, its mean return less that without it is above
``surety`` standard errors of that mean. The library is part of the instructions; with ``refine`` a lesson is read only
in the states that it is about (:class:`.Lesson`).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents import Episode, SearchPlayer, Step, Turn, TurnRequest, as_requests, find_search_player
from agents.analysis import TIE, best_actions
from agents.common import read_toml, replacing, to_toml
from benchmark import UsageError
from benchmark.play import AgentTable
from benchmark.runs import Replay, data_digest, ending, replay_if_unchanged, requests_of
from research.improve.agents import behind_the_rules, in_folder, prompt_map_of, with_texts
from research.improve.budget import BudgetSpentError
from research.improve.task import ImprovementTask, Play, returns_in_common
from textgames import Scenario
from textgames.solving import standard_error


class JudgedMove(NamedTuple):
    """One decision of a recorded episode beside the best one."""

    step: Step
    lost: float  # the value of the best action less that of the executed one; 0 if that is one of the best
    best: tuple[str, ...]


class Judge:
    """Judges episodes of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self._game = scenario, scenario.game()
        found = find_search_player(self._game)
        self._solver = found if isinstance(found, SearchPlayer) else None

    def moves(self, replayed: Replay) -> list[JudgedMove]:
        """Return the decisions whose actions are valued; none if the game's reference player can't."""
        if self._solver is None:
            return []
        judged = []
        for step, request in requests_of(replayed):
            try:
                values = self._solver.values(request)
            except ValueError:  # one that follows fixed rules, as in Werewolf
                return []
            if step.action in values:
                best = best_actions(self._solver, request, values)
                lost = 0.0 if step.action in best else max(values.values()) - values[step.action]
                judged.append(JudgedMove(step, lost, best))
        return judged

    def words(self, record: Episode, moves: int = 3) -> str:
        """Return an episode in words, with so many of the moves that lost the most, in the order of play."""
        replayed = replay_if_unchanged(record, self.scenario)
        returns = ", ".join(f"{value:g}" for value in record.returns.values())
        lines = [f"The episode {ending(record, replayed)}. Its return was {returns}."]
        judged = self.moves(replayed) if replayed else []
        worst = sorted((move for move in judged if move.lost > TIE), key=lambda move: -move.lost)[:moves]
        known = "exact" if self._solver is not None and self._solver.exact else "estimated"
        lines += [
            f"In round {move.step.index + 1} the player saw:\n{move.step.observation}\n"
            f"It answered: {move.step.turn.response[-600:]}\n"
            f"{move.step.action} was played, which lost {move.lost:.3g} of the {known} expected return; best was "
            f"{' or '.join(move.best)}."
            for move in sorted(worst, key=lambda move: move.step.index)
        ]
        if judged and not worst:
            lines.append("Every move was one of the best.")
        unread = [step for step in replayed.steps if not step.valid] if replayed else []
        if unread:
            lines.append(
                f"{len(unread)} answers could not be read; the first of them, for {unread[0].unreadable}: "
                f"{unread[0].turn.response[-300:]!r}"
            )
        return "\n\n".join(lines)


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
    """A text that a player reads in the states whose observations meet a condition; in all if there are no phrases.

    AlphaOPT (arXiv 2510.18428) holds insights with conditions of applicability, and evolves by a diagnosis of where
    retrieval went wrong. Our reading: an observation holds all phrases of a condition, but none behind ``not``. A
    retrieved lesson helped in a state if the move there was one of the best and harmed if it wasn't, by exact values or
    the search player's; in games without either, it harmed if the episode returned less than the same seed did before.
    It is missed in states in which it wasn't retrieved and a move lost.
    """

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
