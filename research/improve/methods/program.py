"""A language model writes a program that plays in its place, and improves it by what it gets: a tree of programs.

Each program plays the same training seeds in a sandbox. The best one is given back to the model with its mean return,
its share of legal answers, its errors and its worst episode, for the next generation. What it hands back is
``program:FILE``, which asks no model any more (AutoHarness, Lou et al. 2026, arXiv 2603.03329; search over programs:
FunSearch, Romera-Paredes et al. 2024).
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.methods.writing import Writer, check_sandbox, handed_back, keep_programs, scenario_of, transcript
from research.improve.plays import Play
from research.improve.programs.players import ProgramPlayer, wrong_with
from research.improve.programs.sandbox import Sandbox
from research.improve.task import ImprovementTask

SHOWN_ERRORS = 3
SHOWN_EPISODES = 2  # of random play, before there is a program


@dataclass
class Candidate:
    """A program that was tried."""

    generation: int  # from 1
    file: Path | None  # ``None`` if an answer held no program
    parent: Path | None  # the file of the program that it was to be better than
    error: str | None = None  # why it couldn't be played; ``None`` if it was
    mean: float | None = None  # its mean return
    legal: float | None = None  # the share of its decisions that were legal actions

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Larger for a better one."""
        return self.mean is not None, self.mean or 0.0, self.legal or 0.0


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    generations: int = 4,
    children: int = 4,
    seeds: int = 20,
    seconds: float = 1.0,
) -> AgentTable:
    """Let a language model write the player.

    Args:
        task: the agent has a language model, unless there is a writer.
        writer: the agent whose language model writes; the agent itself when not given.
        generations: how often programs are written.
        children: how many each time.
        seeds: training seeds that every program plays.
        seconds: of processor time that a program has for a decision.
    """
    check_sandbox(seconds)
    tree = _Tree(task, Writer(task, writer, "program"), task.seeds(seeds), {"seconds": seconds})
    random, before = None, None
    try:
        before = task.play(task.agent, tree.seeds, "before")
        random = task.play({"spec": "random"}, task.seeds(SHOWN_EPISODES, after=seeds), "random")
        for generation in range(1, generations + 1):
            tree.grow(generation, children, random)
            if tree.best is not None and tree.best.mean == tree.most:
                break
    except BudgetSpentError as spent:
        task.say(str(spent))
    files = {each.file: str(each.file.relative_to(task.out)) for each in tree.tried if each.file is not None}
    rows = [
        {**asdict(one), "file": one.file and files[one.file], "parent": one.parent and files[one.parent]}
        for one in tree.tried
    ]
    keep_programs(task, rows)
    best = tree.best
    if before is None or best is None or best.file is None or best.mean is None:
        return task.agent
    if not task.is_better(tree.plays[best.file], before):
        return task.agent
    return handed_back(task, "program", best.file, tree.options)


class _Tree:
    """All programs that were tried, and how they play."""

    def __init__(self, task: ImprovementTask, writer: Writer, seeds: list[int], options: dict[str, Any]) -> None:
        self._task, self._writer, self.seeds, self.options = task, writer, seeds, options
        self.tried: list[Candidate] = []
        self.plays: dict[Path | None, Play] = {}
        ranges = [scenario_of(name).game().return_range for name in task.scenarios]
        self.most = sum(each[1] for each in ranges if each) / len(ranges) if all(ranges) else float("inf")

    @property
    def best(self) -> Candidate | None:
        """The best so far, the first of equals; what can't be played only if there is nothing else."""
        return max(self.tried, key=lambda one: one.rank, default=None)

    def grow(self, generation: int, children: int, random: Play) -> None:
        """Have so many programs written, after the best of the earlier generations, and play them."""
        parent = self.best
        if parent is None or parent.mean is None:
            shown, records = random, random.records[:SHOWN_EPISODES]
        else:
            shown = self.plays[parent.file]
            records = (min(shown.records, key=lambda one: sum(one.returns.values())),)
        told = "\n\n".join(transcript(record, shown.scenarios[record.scenario]) for record in records)
        about = {} if parent is None or parent.file is None else self._about(parent)
        for _ in range(children):
            file = self._writer.write(told, **about)
            child = Candidate(generation, file, parent.file if parent and about else None)
            self.tried.append(child)
            self._play(child)
        played = [one for one in self.tried if one.generation == generation and one.mean is not None]
        best = max(played, key=lambda one: one.rank, default=None)
        found = f", the best returns {best.mean:.3f} with {best.legal:.0%} legal answers" if best else ""
        self._task.say(f"generation {generation}: {len(played)} of {children} programs can be played{found}")

    def _play(self, child: Candidate) -> None:
        if child.file is None:
            child.error = "the answer has no block with a program"
            return
        with Sandbox(child.file.read_text(encoding="utf-8"), **self.options) as sandbox:
            child.error = wrong_with(sandbox, ProgramPlayer.functions)
        if child.error is not None:
            return
        if child.file not in self.plays:
            agent = {"spec": f"program:{child.file}", **self.options}
            self.plays[child.file] = self._task.play(agent, self.seeds, child.file.stem)
        play = self.plays[child.file]
        steps = [step for record in play.records for step in record.steps]
        child.mean, child.legal = play.mean, sum(step.valid for step in steps) / len(steps)

    def _about(self, parent: Candidate) -> dict[str, str]:
        """Return what the writer is told of a program."""
        assert parent.file is not None
        if parent.mean is None:
            results = f"It {parent.error}"
        else:
            records = self.plays[parent.file].records
            wrong = [step.turn.response for record in records for step in record.steps if not step.valid]
            errors = [f"- {text[:600]}" for text in dict.fromkeys(wrong)][:SHOWN_ERRORS]
            results = (
                f"Its mean return over {len(records)} episodes is {parent.mean:.3f}, and {parent.legal:.1%} of its "
                "answers are legal actions. The episode above is the worst of them."
            )
            results += "\nSome of the other answers:\n" + "\n".join(errors) if errors else ""
        return {"source": parent.file.read_text(encoding="utf-8").strip(), "results": results}
