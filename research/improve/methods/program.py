"""A language model writes a program that plays in its place, and improves it by what it gets: a tree of programs.

Each program plays the same training seeds in a sandbox. The best one is given back to the model with its mean return,
its share of legal answers, its errors and its worst episode, for the next generation. What it hands back is
``program:FILE``, which asks no model any more (AutoHarness, Lou et al. 2026, arXiv 2603.03329; search over programs:
FunSearch, Romera-Paredes et al. 2024).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents import Episode
from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.methods.writing import (
    NO_PROGRAM,
    Writer,
    check_sandbox,
    handed_back,
    keep_programs,
    scenario_of,
    transcript,
)
from research.improve.programs.players import ProgramPlayer, wrong_with
from research.improve.programs.sandbox import Sandbox
from research.improve.task import ImprovementTask, Play

METRICS = {
    "efficiency": "rewards of all players in a round",
    "equality": "1 if all get the same, 0 if one gets all of very many",
    "sustainability": "the mean number of the rounds that paid, from 0: high if there is something left late",
    "peace": "players in a round who weren't put out of the way",
}


def social_metrics(records: Sequence[Episode]) -> dict[str, float]:
    """Return the mean over episodes of each metric that any of them has, in the order of :data:`METRICS`.

    A program plays all seats of a game for several players, and its writer is told how the players did together, beside
    the return: dense feedback in arXiv 2603.19453 (policy synthesis in sequential social dilemmas). A game's own
    figures of these names hold; of other games they follow from the rewards.
    """
    told = [{**_computed(record), **next(iter(record.metrics.values()), {})} for record in records]
    found = {name: [each[name] for each in told if name in each] for name in METRICS}
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def _computed(record: Episode) -> dict[str, float]:
    """Return what rewards alone say, without what is undefined: Perolat et al. (NeurIPS 2017, section 2.3)."""
    returns = np.array([*record.returns.values()])
    rounds = 1 + max(step.index for step in record.steps)
    found = {"efficiency": float(returns.sum() / rounds)}
    if returns.sum() > 0:
        apart = np.abs(returns[:, None] - returns).sum()
        found["equality"] = float(1 - apart / (2 * len(returns) * returns.sum()))
    paid = [[step.index for step in record.steps_of(player) if step.reward > 0] for player in record.returns]
    if any(paid):
        found["sustainability"] = float(np.mean([np.mean(own) for own in paid if own]))
    return found


def told_together(records: Sequence[Episode]) -> str:
    """Return the metrics as a writer reads them, a line each; empty for one player."""
    if len(records[0].returns) < 2:
        return ""
    lines = [f"- {name} {value:.3f} ({METRICS[name]})" for name, value in social_metrics(records).items()]
    return "\n".join(["The program played all seats at once. Together the players had:", *lines])


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
    feedback: str = "reward",
) -> AgentTable:
    """Let a language model write the player.

    Args:
        task: the agent has a language model, unless there is a writer.
        writer: the agent whose language model writes; the agent itself when not given.
        generations: how often programs are written.
        children: how many each time.
        seeds: training seeds that every program plays.
        seconds: of processor time that a program has for a decision.
        feedback: what the writer is told of a program: ``reward``, or ``social``, in games for several players
            efficiency, equality, sustainability and peace, too.
    """
    if feedback not in ("reward", "social"):
        raise UsageError(f"feedback is reward or social, got {feedback!r}")
    check_sandbox(seconds)
    asked, options, compared = Writer(task, writer, "program"), {"seconds": seconds}, task.seeds(seeds)
    ranges = [scenario_of(name).game().return_range for name in task.scenarios]
    most = sum(each[1] for each in ranges if each) / len(ranges) if all(ranges) else float("inf")
    tried, plays, before = list[Candidate](), dict[Path, Play](), None
    try:
        before = task.play(task.agent, compared, "before")
        random = task.play({"spec": "random"}, task.seeds(SHOWN_EPISODES, after=seeds), "random")
        for generation in range(1, generations + 1):
            parent = _best(tried)
            if parent is None or parent.mean is None or parent.file is None:
                shown, records = random, random.records[:SHOWN_EPISODES]
            else:
                shown = plays[parent.file]
                records = (min(shown.records, key=lambda one: sum(one.returns.values())),)
            told = "\n\n".join(transcript(record, shown.scenarios[record.scenario]) for record in records)
            about = {} if parent is None or parent.file is None else _about(parent, plays, feedback)
            for _ in range(children):
                child = Candidate(generation, asked.write(told, **about), parent.file if parent and about else None)
                tried.append(child)
                _play(child, task, compared, options, plays)
            played = [one for one in tried if one.generation == generation and one.mean is not None]
            best = _best(played)
            found = f", the best returns {best.mean:.3f} with {best.legal:.0%} legal answers" if best else ""
            task.say(f"generation {generation}: {len(played)} of {children} programs can be played{found}")
            if (best := _best(tried)) is not None and best.mean == most:
                break
    except BudgetSpentError as spent:
        task.say(str(spent))

    def in_folder(file: Path | None) -> str | None:
        return None if file is None else str(file.relative_to(task.out))

    keep_programs(
        task, [{**asdict(one), "file": in_folder(one.file), "parent": in_folder(one.parent)} for one in tried]
    )
    best = _best(tried)
    if before is None or best is None or best.file is None or best.mean is None:
        return task.agent
    if not task.is_better(plays[best.file], before):
        return task.agent
    return handed_back(task, "program", best.file, options)


def _best(tried: Sequence[Candidate]) -> Candidate | None:
    """Return the best so far, the first of equals; what can't be played only if there is nothing else."""
    return max(tried, key=lambda one: one.rank, default=None)


def _play(
    child: Candidate, task: ImprovementTask, seeds: list[int], options: dict[str, Any], plays: dict[Path, Play]
) -> None:
    """Play a program once, or say why it can't be."""
    if child.file is None:
        child.error = NO_PROGRAM
        return
    with Sandbox(child.file.read_text(encoding="utf-8"), **options) as sandbox:
        child.error = wrong_with(sandbox, ProgramPlayer.functions)
    if child.error is not None:
        return
    if child.file not in plays:
        plays[child.file] = task.play({"spec": f"program:{child.file}", **options}, seeds, child.file.stem)
    play = plays[child.file]
    steps = [step for record in play.records for step in record.steps]
    child.mean, child.legal = play.mean, sum(step.valid for step in steps) / len(steps)


def _about(parent: Candidate, plays: Mapping[Path, Play], feedback: str) -> dict[str, str]:
    """Return what the writer is told of a program."""
    assert parent.file is not None
    results = f"It {parent.error}"
    if parent.mean is not None:
        records = plays[parent.file].records
        wrong = [step.turn.response for record in records for step in record.steps if not step.valid]
        errors = [f"- {text[:600]}" for text in dict.fromkeys(wrong)][:SHOWN_ERRORS]
        results = (
            f"Its mean return over {len(records)} episodes is {parent.mean:.3f}, and {parent.legal:.1%} of its "
            "answers are legal actions. The episode above is the worst of them."
        )
        results += "\nSome of the other answers:\n" + "\n".join(errors) if errors else ""
        results += "\n" + told_together(records) if feedback == "social" else ""
    return {"source": parent.file.read_text(encoding="utf-8").strip(), "results": results}
