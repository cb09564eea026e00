"""A language model writes the rules of the game as a program, and a planner plays with them: a code world model.

The model reads the game's instructions and episodes of random play. What its rules say of every step of these is
compared with what happened, and the differences go back to it as text. What it hands back is ``rules:FILE``, which asks
no model any more (Lehrach et al., arXiv 2510.04542). The versions are a chain, each after the best so far, or a tree
(:func:`.tree`); or they are made of the game's text alone (:func:`.formalised`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents import TurnRequest, request_in
from benchmark import UsageError, replay
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
from research.improve.programs.players import RulesPlayer, wrong_with
from research.improve.programs.sandbox import Answer, Call, Sandbox
from research.improve.task import ImprovementTask, Play
from textgames import Scenario, did_you_mean

SHOWN_FAILURES = 5
_CLOSE = 1e-6


class SeenStep(NamedTuple):
    """One step of real play, which rules have to explain."""

    observation: str
    legal: tuple[str, ...]
    action: str
    reward: float
    after: str | None  # the next observation; None if the game was over


class Explained(NamedTuple):
    """The steps of real play that rules explain, and those that they get wrong."""

    file: Path | None
    passed: int
    failures: tuple[str, ...]
    runs: bool = False  # whether they can be asked at all


def seen_in(play: Play) -> list[SeenStep]:
    """Return the different steps of some episodes, in the order in which they were played."""
    steps: dict[SeenStep, None] = {}
    for record in play.records:
        played = replay(record, play.scenarios[record.scenario])
        last = None if played.episode.terminated else next(iter(played.final_observations.values()), None)
        afters = [*(step.observation for step in played.steps[1:]), last]
        for step, request, after in zip(played.steps, played.asked, afters, strict=True):
            steps[SeenStep(step.observation, request.legal_actions, step.action, step.reward, after)] = None
    return list(steps)


def tested(file: Path | None, steps: Sequence[SeenStep], options: dict[str, Any]) -> Explained:
    """Compare rules with real play: a step is explained if it is among the outcomes of what was played."""
    if file is None:
        return Explained(None, 0, (NO_PROGRAM,))
    source, seconds = file.read_text(encoding="utf-8"), options["seconds"]
    with Sandbox(source, harness=RulesPlayer.harness, seconds=seconds) as sandbox:
        if (wrong := wrong_with(sandbox, RulesPlayer.functions)) is not None:
            return Explained(file, 0, (f"The program {wrong}",))
        seen = (text for step in steps for text in (step.observation, step.after) if text is not None)
        texts = list(dict.fromkeys(seen))
        said = dict(zip(texts, sandbox.calls([Call("predict", (text,)) for text in texts]), strict=True))
    faults = [fault for step in steps if (fault := _fault(step, said)) is not None]
    return Explained(file, len(steps) - len(faults), tuple(faults[:SHOWN_FAILURES]), True)


def _fault(step: SeenStep, said: dict[str, Answer]) -> str | None:
    """Return what rules get wrong of a step, for the writer; ``None`` if they explain it."""
    seen = f"Where the observation is\n{step.observation}\nand {step.action} was played"
    here = said[step.observation]
    if here.error is not None:
        return f"{seen}, the program failed: {here.error}"
    _, outcomes = here.value
    if step.legal and sorted(outcomes) != sorted(step.legal):
        return f"{seen}: actions(state) is {sorted(outcomes)}, legal are {sorted(step.legal)}"
    told = outcomes.get(step.action, "actions(state) doesn't have it")
    if isinstance(told, str):
        return f"{seen}, the program failed: {told}"
    after = None if step.after is None else said[step.after]
    if after is not None and after.error is not None:
        return f"{seen}, the next observation was\n{step.after}\nand there the program failed: {after.error}"
    key = None if after is None else after.value[0]
    if any(to == key and abs(reward - step.reward) < _CLOSE for chance, to, reward in told if chance > 0):
        return None
    real = "the game was over" if key is None else f"the next state, as parse reads it, was {key}"
    listed = "; ".join(
        f"probability {chance:g}, reward {reward:g}, {'the game is over' if to is None else f'next state {to}'}"
        for chance, to, reward in told
    )
    return f"{seen}, {real}, with the reward {step.reward:g}. outcomes(state, action) has only: {listed}"


EXPLORATION = 0.5
"""The weight of the bound, in units of the share of the steps that a version explains."""


@dataclass(frozen=True, eq=False)
class Version:
    """A program that was written."""

    action: str  # how it was asked for: ``write``, ``better`` or ``fix``
    parent: "Version | None"  # the one that it was to be better than
    tested: Explained
    share: float  # of the steps that it explains


Choice = tuple[str, Version | None]
"""The question that asks for the next version, and the version that it is about."""


def chain(found: Sequence[Version]) -> Choice:
    """Choose the best so far, the last of equals, so that a repair continues."""
    return _after(best_of(found))


def best_of(found: Sequence[Version]) -> Version | None:
    """Return the version that explains most, the last of equals; one that is a program, if there is one."""
    return max(reversed(found), key=lambda one: (one.tested.file is not None, one.share), default=None)


def tree(found: Sequence[Version]) -> Choice:
    """Choose a place in the tree of versions by upper confidence bounds.

    Our reading of GIF-MCTS (arXiv 2405.15383), whose nodes are programs and whose actions are to generate a new one,
    to improve one by what it predicts wrongly, and to fix one that fails: at every node the versions below it compete
    with one more that is written after the node itself. Each is worth the mean share of steps that those below explain.
    """
    node: Version | None = None
    while True:
        children = [one for one in found if one.parent is node]
        if not children:
            return _after(node)
        below = [[one.share for one in found if _descends(one, child)] for child in children]
        total = sum(map(len, below))
        bounds = [
            -math.inf if child.tested.file is None else _bound(shares, total)
            for child, shares in zip(children, below, strict=True)
        ]
        if _bound([child.share for child in children], total) > max(bounds):
            return _after(node)
        node = children[bounds.index(max(bounds))]


def _after(version: Version | None) -> Choice:
    if version is None or version.tested.file is None:
        return "write", None
    return ("better" if version.tested.runs else "fix"), version


def _descends(version: Version | None, ancestor: Version) -> bool:
    return version is ancestor or (version is not None and _descends(version.parent, ancestor))


def _bound(shares: Sequence[float], total: int) -> float:
    return sum(shares) / len(shares) + EXPLORATION * math.sqrt(math.log(total) / len(shares))


SEARCHES: dict[str, Callable[[Sequence[Version]], Choice]] = {"chain": chain, "tree": tree}
"""The ways to search for versions, by name."""


def formalised(
    asked: Writer, scenario: Scenario, seed: int, rounds: int, options: dict[str, Any], found: list[Version]
) -> None:
    """Let a writer formalise a game's description, and check its own work until it finds it right; ``found`` grows.

    Our reading of LLMFP (arXiv 2410.12112): a model states a planning problem as a program, a solver plans, and the
    model assesses and modifies its statement. It reads the instructions and the first observation of a training seed's
    episode, then its own program with the move that is planned there, or with why there is none.
    """
    game = scenario.game()
    state = game.initial_state(np.random.default_rng(seed))
    request = request_in(game, state, game.to_move(state)[0], scenario.horizon)
    shown = f"Observation:\n{request.observation}\n\nLegal actions: {', '.join(request.legal_actions)}"
    while len(found) < rounds:
        if not found or found[-1].tested.file is None:
            file, parent = asked.write(shown, "text"), None
        else:
            parent = found[-1]
            assert parent.tested.file is not None
            source = parent.tested.file.read_text(encoding="utf-8").strip()
            file = asked.write(shown, "text", "check", source=source, results=parent.tested.failures[0])
            if file is None or file == parent.tested.file:
                break  # it finds its program right
        tested = planned(file, request, options)
        found.append(Version("check" if parent else "text", parent, tested, float(tested.runs)))


def planned(file: Path | None, request: TurnRequest, options: dict[str, Any]) -> Explained:
    """Plan by rules for one observation; ``failures`` has what came of it in a sentence."""
    if file is None:
        return Explained(None, 0, (NO_PROGRAM,))
    with Sandbox(file.read_text(encoding="utf-8"), harness=RulesPlayer.harness, seconds=options["seconds"]) as sandbox:
        if (wrong := wrong_with(sandbox, RulesPlayer.functions)) is not None:
            return Explained(file, 0, (f"The program {wrong}",))
        legal = list(request.legal_actions)
        told = sandbox.call("plan", request.observation, legal, request.steps_left, options["max_states"])
    if told.error is not None:
        return Explained(file, 0, (f"Planning with it for that observation fails: {told.error}",))
    return Explained(file, 1, (f"Planning with it for that observation, the best action is {told.value}.",), True)


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
        failures = "\n\n".join(parent.tested.failures)
        about = {"source": file.read_text(encoding="utf-8").strip(), "failures": failures}
        about |= {"passed": str(parent.tested.passed), "total": str(len(steps))}
    new = tested(asked.write(transcripts, then=action, **about), steps, options)
    return Version(action, parent, new, new.passed / len(steps))


def _told(number: int, one: Version, found: list[Version]) -> dict[str, Any]:
    file = one.tested.file and f"programs/{one.tested.file.name}"
    parent = None if one.parent is None else found.index(one.parent) + 1
    told = {"right": one.tested.passed, "failures": one.tested.failures}
    return {"round": number, "action": one.action, "parent": parent, "file": file, **told}
