"""The command ``textbench dynamic-program``, and its problems in words, each a file of ``examples/problems``."""

import json
import runpy
from fractions import Fraction
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from agents.common import REQUIRED, option, part, settings
from benchmark.cli import Output
from benchmark.play import RunOptions
from research.improve.cli import OF_THE_AGENT, agent_of

if TYPE_CHECKING:
    from research.improve.agents import Questions

FOLDER = Path(__file__).parent / "examples" / "problems"
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.py")))


class Problem:
    """One of them: ``text`` is what a writer reads."""

    def __init__(self, name: str) -> None:
        self._names = runpy.run_path(str(FOLDER / f"{name}.py"))
        self.text = str(self._names["__doc__"]).strip()

    def optimum(self, steps: int | None = None, start: Any = None) -> Fraction:
        """Return the true optimum by backward induction in fractions; start and horizon are its own if not given."""
        told = self._names["problem"]()

        @cache
        def value(key: str, left: int) -> Fraction:
            state, found = json.loads(key), list[Fraction]()
            for action in self._names["actions"](state) if left else ():
                worth = Fraction(0)
                for chance, after, reward, over in self._names["outcomes"](state, action):
                    later = 0 if over else told["discount"] * value(json.dumps(after), left - 1)
                    worth += chance * (reward + later)
                found.append(worth)
            return max(found, default=Fraction(0))

        return value(json.dumps(told["start"] if start is None else start), steps or told["horizon"])


FUNCTIONS = ("problem()", "actions(state)", "outcomes(state, action)")
_EQUAL = 1e-6  # optima that differ by no more, in units of the true one if that is above 1, are equal


@settings
class Settings:
    """Let a model state described decision problems as dynamic programs, and count the optima that are exactly right.

    The model reads a description alone and writes states, actions, transitions, rewards and horizon as a program, which
    runs in a sandbox; our solver computes its optimum, which is compared with the true one, known in fractions. (Our
    reading of DPLM, arXiv 2507.11737, which trains a model for that.) The same command asks nothing again.

    examples:
      textbench dynamic-program --agent openai:MODEL
      textbench dynamic-program --agent openai:MODEL --problem queue --problem lake --json
    """

    agent: str = option(REQUIRED, "SPEC", "whose language model writes")
    problems: tuple[str, ...] = option(NAMES, "NAME", f"of {', '.join(NAMES)}; repeatable (default: all)")
    seconds: float = option(10.0, "S", "of processor time for a program", gt=0)
    max_states: int = option(20_000, "N", "states of a program at most", ge=1)
    out: str = option("runs/dynamic-program", "DIR", "where its answers are kept")
    options: RunOptions = part(RunOptions, OF_THE_AGENT)
    output: Output = part(Output, ["json", "quiet"])


def run(settings: Settings) -> int:
    """Print what the programs of a model are worth, beside the truth."""
    from benchmark import unknown_name
    from benchmark.show import print_tables, text_table
    from research.improve.agents import CALLS_NAME, Questions
    from research.improve.budget import Budget, SpendingMeter
    from research.improve.methods.writing import check_sandbox

    for name in settings.problems:
        if name not in NAMES:
            raise unknown_name("problem", name, NAMES)
    check_sandbox(settings.seconds)
    agent, out = agent_of(settings.agent, settings.options), Path(settings.out)
    out.mkdir(parents=True, exist_ok=True)
    questions = Questions(agent, out / CALLS_NAME, SpendingMeter(Budget(), out / "seconds.json"))
    rows = [_row(name, questions, settings) for name in dict.fromkeys(settings.problems)]
    right = sum(row["right"] for row in rows)
    if settings.output.json:
        settings.output.document({"agent": settings.agent, "right": right, "of": len(rows), "problems": rows})
        return 0
    lines = [
        (
            *(row["problem"], f"{row['true']:.6g}", "none" if row["written"] is None else f"{row['written']:.6g}"),
            "right" if row["right"] else row["wrong"] or "wrong",
        )
        for row in rows
    ]
    notes = [f"{right} of {len(rows)} are exactly right."]
    print_tables([text_table("optima", ("<problem", "true", "written", "<"), lines, notes)])
    return 0


def _row(name: str, questions: "Questions", settings: Settings) -> dict[str, Any]:
    """Ask for the program of one problem, solve it and compare."""
    from research.improve.dynamic_programs import Problem
    from research.improve.methods.writing import program_in, texts_of

    problem = Problem(name)
    true = float(problem.optimum())
    texts = texts_of("dynamic-program")
    question = Template(texts["write"]).substitute(problem=problem.text)
    source = program_in(questions.ask(f"{question.strip()}\n{texts['form'].strip()}\n"))
    value, wrong = solved(source, settings.seconds, settings.max_states)
    right = value is not None and abs(value - true) <= _EQUAL * max(1.0, abs(true))
    return {"problem": name, "true": true, "written": value, "right": right, "wrong": wrong}


def solved(source: str, seconds: float, max_states: int) -> tuple[float | None, str | None]:
    """Return the optimum of a program, or why it has none."""
    from research.improve.methods.writing import NO_PROGRAM
    from research.improve.programs.players import RulesPlayer, wrong_with
    from research.improve.programs.sandbox import Sandbox

    if not source:
        return None, NO_PROGRAM
    with Sandbox(source, harness=RulesPlayer.harness, seconds=seconds) as sandbox:
        if (wrong := wrong_with(sandbox, FUNCTIONS)) is not None:
            return None, f"the program {wrong}"
        told = sandbox.call("optimum", max_states)
    if told.error is None and not isinstance(told.value, float):  # the process is the program's
        return None, "the program answered in the solver's place"
    return told.value, told.error and " ".join(told.error.split())
