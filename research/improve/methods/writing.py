"""Common pieces of the improvers that let a language model write programs: questions, files and the comparison.

A program is a file ``programs/DIGEST.py`` of the task's folder, so that equal programs are one and are played once.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from agents import Episode
from agents.common import replacing
from benchmark import UsageError, replay
from benchmark.play import AgentTable
from benchmark.runs import find_scenario
from research.improve.agents import Questions
from research.improve.programs.players import digest
from research.improve.programs.sandbox import NoSandboxError, Sandbox
from research.improve.programs.worker import MODULES
from research.improve.task import ImprovementTask
from textgames import Scenario, behind_thoughts

PROGRAM = "program.py"
"""The file of the program that is handed back, in the task's folder."""

PROGRAMS = "programs.json"
"""The file that tells of every program that was tried."""

NO_PROGRAM = "the answer has no block with a program"

_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class Writer:
    """A language model that is asked for programs, with the questions of a ``method`` in ``programs.toml``."""

    def __init__(self, task: ImprovementTask, writer: str | None, method: str) -> None:
        self._task = task
        self._questions: Questions = task.questions(writer)
        self._texts = texts_of(method)

    def write(self, transcripts: str, first: str = "write", then: str = "better", **before: str) -> Path | None:
        """Return a new program, or ``None`` if the answer has none.

        The question is the method's text ``first``, and if there is a program ``before``, the text ``then`` about it.
        """
        scenarios = [scenario_of(name) for name in self._task.scenarios]
        told = dict.fromkeys(scenario.game().instructions(scenario.game().players[0]) for scenario in scenarios)
        about = {"instructions": "\n\n".join(told), "transcripts": transcripts}
        question = [Template(self._texts[first]).substitute(about, functions=self._texts.get("functions", "").strip())]
        question += [Template(self._texts[then]).substitute(before)] if before else []
        answer = self._questions.ask("\n".join(part.strip() + "\n" for part in (*question, self._texts["form"])))
        if not (source := program_in(answer)):
            return None
        file = self._task.out / "programs" / f"{digest(source)}.py"
        file.parent.mkdir(exist_ok=True)
        with replacing(file) as stream:
            stream.write(source)
        return file


def texts_of(method: str) -> dict[str, str]:
    """Return the questions of a method in ``programs.toml``, with the ``form`` of an answer that all share."""
    texts = tomllib.loads(files(__package__).joinpath("programs.toml").read_text(encoding="utf-8"))
    return {**texts[method], "form": Template(texts["form"]).substitute(modules=", ".join(MODULES[1:]))}


def program_in(answer: str) -> str:
    """Return the program in an answer, not in its reasoning: the longest block, or all of it; empty if there is
    none."""
    answer = behind_thoughts(answer) or ""
    blocks: list[str] = [block.strip() for block in _BLOCK.findall(answer)]
    if blocks:
        return max(blocks, key=len) + "\n"
    return answer.strip() + "\n" if re.match(r"\s*(def|import|from|#|\"\"\")", answer) and "def " in answer else ""


def scenario_of(name: str) -> Scenario:
    """Return the scenario of a name that the command has checked, a game of one's own included."""
    return find_scenario(name, "write for")


def transcript(record: Episode, scenario: Scenario, most: int = 12) -> str:
    """Return an episode as a writer reads it: what was seen, played and paid in its last ``most`` rounds."""
    played = replay(record, scenario)
    lines = []
    for step, request in [*zip(played.steps, played.asked, strict=True)][-most:]:
        unread = "" if step.valid else f" in place of an answer that can't be read: {step.turn.response[-300:]!r}"
        lines += [f"Observation:\n{step.observation}\n", f"Legal actions: {', '.join(request.legal_actions)}"]
        lines += [f"Played: {step.action}{unread}", f"Reward: {step.reward:g}", ""]
    how = "The rules ended the episode here." if played.episode.terminated else "The episode was cut off here."
    returned = ", ".join(f"{value:g}" for value in played.episode.returns.values())
    return "\n".join([*lines, f"{how} Its return was {returned}."])


def keep_programs(task: ImprovementTask, tried: Sequence[Mapping[str, Any]]) -> None:
    """Write what became of every program that was tried, as JSON with one a line."""
    with replacing(task.out / PROGRAMS) as stream:
        stream.write("[\n" + ",\n".join(json.dumps(each) for each in tried) + "\n]\n")


def handed_back(task: ImprovementTask, player: str, file: Path, options: Mapping[str, Any]) -> AgentTable:
    """Return the agent ``player:PROGRAM`` with a program as the folder's own."""
    with replacing(task.out / PROGRAM) as stream:
        stream.write(file.read_text(encoding="utf-8"))
    return {"spec": f"{player}:{PROGRAM}", **options}


def check_sandbox(seconds: float) -> None:
    """Raise a UsageError if programs can't be held, or not to so many seconds a decision, before anything is asked."""
    try:
        Sandbox("", seconds=seconds).close()
    except (NoSandboxError, ValueError) as error:
        raise UsageError(str(error)) from None
