"""A language model writes the rules of the game as a program, and a planner plays with them: a code world model.

The model reads the game's instructions and episodes of random play. What its rules say of every step of these is
compared with what happened, and the differences go back to it as text. What it hands back is ``rules:FILE``, which asks
no model any more (Lehrach et al., arXiv 2510.04542). The versions are a chain, each after the best so far, or a tree
(:func:`research.improve.methods.programming.versions.tree`); or they are made of the game's text alone
(:func:`research.improve.methods.programming.formalise.formalised`).
"""

from typing import Any

from benchmark import UsageError
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.methods.programming.formalise import formalised
from research.improve.methods.programming.rules_explain import SHOWN_FAILURES, SeenStep, seen_in, tested
from research.improve.methods.programming.versions import SEARCHES, Version, best_of
from research.improve.methods.programming.writing import (
    Writer,
    check_sandbox,
    handed_back,
    keep_programs,
    scenario_of,
    transcript,
)
from research.improve.task import ImprovementTask
from textgames import did_you_mean

TEXT = "text"


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    search: str = "chain",
    episodes: int = 10,
    shown: int = 2,
    rounds: int = 5,
    seeds: int = 20,
    max_states: int = 20_000,
    seconds: float = 10.0,
) -> AgentTable:
    """Let a language model write the rules that a planner plays with.

    Args:
        task: the agent has a language model, unless there is a writer; the scenario is one game, for one player if play
            is read.
        writer: the agent whose language model writes; the agent itself when not given.
        search: ``chain`` rewrites the best version, ``tree`` one that an upper confidence bound chooses, and ``text``
            has the model check what it wrote of the game's text alone, without any play.
        episodes: of random play that rules are compared with.
        shown: how many of them the writer reads.
        rounds: how often it may write.
        seeds: training seeds that the planner is compared with the agent on.
        max_states: how many states the planner looks at.
        seconds: of processor time that it has for a decision.
    """
    check_sandbox(seconds)
    if search not in (known := (*SEARCHES, TEXT)):
        raise UsageError(f"search is one of {', '.join(known)}, got {search!r}{did_you_mean(search, known)}")
    several = [name for name in task.scenarios if len(scenario_of(name).game().players) > 1]
    if len(task.scenarios) > 1 or (several and search != TEXT):
        raise UsageError(
            f"code-model writes the rules of one game, which is for one player unless search=text, got "
            f"{', '.join(task.scenarios)}"
        )
    asked, options = Writer(task, writer, "code-model"), {"max_states": max_states, "seconds": seconds}
    compared, found = task.seeds(seeds), list[Version]()
    before = after = None
    try:
        if search == TEXT:
            (seed,) = task.seeds(1, after=seeds)
            formalised(asked, scenario_of(task.scenarios[0]), seed, rounds, options, found)
        else:
            random = task.play({"spec": "random"}, task.seeds(episodes, after=seeds), "random")
            (scenario,) = random.scenarios.values()
            transcripts = "\n\n".join(transcript(record, scenario) for record in random.records[:shown])
            steps = seen_in(random)
            while len(found) < rounds and not (found and found[-1].tested.passed == len(steps)):
                found.append(_next(search, found, asked, transcripts, steps, options))
                right = found[-1].tested.passed
                task.say(f"round {len(found)}: the rules are right about {right} of {len(steps)} steps")
        if (best := best_of(found)) is not None and best.tested.passed:
            before, after = task.both(task.agent, {"spec": f"rules:{best.tested.file}", **options}, compared)
    except BudgetSpentError as spent:
        task.say(str(spent))
    keep_programs(task, [_told(number, one, found) for number, one in enumerate(found, 1)])
    best = best_of(found)
    if before is None or after is None or best is None or best.tested.file is None:
        return task.agent
    return handed_back(task, "rules", best.tested.file, options) if task.is_better(after, before) else task.agent


def _next(
    search: str, found: list[Version], asked: Writer, transcripts: str, steps: list[SeenStep], options: dict[str, Any]
) -> Version:
    """Have one more version written, after the one that the search chooses, and compare it with play."""
    action, parent = SEARCHES[search](found)
    about: dict[str, str] = {}
    if parent is not None and (file := parent.tested.file) is not None:
        failures = "\n\n".join(parent.tested.failures[:SHOWN_FAILURES])
        about = {"source": file.read_text(encoding="utf-8").strip(), "failures": failures}
        about |= {"passed": str(parent.tested.passed), "total": str(len(steps))}
    new = tested(asked.write(transcripts, then=action, **about), steps, options)
    return Version(action, parent, new, new.passed / len(steps))


def _told(number: int, one: Version, found: list[Version]) -> dict[str, Any]:
    file = one.tested.file and f"programs/{one.tested.file.name}"
    parent = None if one.parent is None else found.index(one.parent) + 1
    told = {"right": one.tested.passed, "failures": one.tested.failures}
    return {"round": number, "action": one.action, "parent": parent, "file": file, **told}
