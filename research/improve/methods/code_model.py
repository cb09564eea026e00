"""A language model writes the rules of the game as a program, and a planner plays with them: a code world model.

The model reads the game's instructions and episodes of random play. What its rules say of every step of these is
compared with what happened, and the differences go back to it as text. What it hands back is ``rules:FILE``, which asks
no model any more (Lehrach et al., arXiv 2510.04542; Dainese et al., arXiv 2405.15383).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmark import UsageError, replay
from benchmark.play import AgentTable
from research.improve.budget import BudgetSpentError
from research.improve.methods.writing import Writer, check_sandbox, handed_back, keep_programs, scenario_of, transcript
from research.improve.plays import Play
from research.improve.programs.players import wrong_with
from research.improve.programs.rules import RulesPlayer
from research.improve.programs.sandbox import Answer, Call, Sandbox
from research.improve.task import ImprovementTask

SHOWN_FAILURES = 5
_CLOSE = 1e-6


class SeenStep(NamedTuple):
    """One step of real play, which rules have to explain."""

    observation: str
    legal: tuple[str, ...]
    action: str
    reward: float
    after: str | None  # the next observation; None if the game was over


class Tested(NamedTuple):
    """Rules that were compared with real play."""

    file: Path | None
    passed: int
    failures: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, int]:
        """Larger for better ones."""
        return self.file is not None, self.passed


def improve(
    task: ImprovementTask,
    *,
    writer: str | None = None,
    episodes: int = 10,
    shown: int = 2,
    rounds: int = 5,
    seeds: int = 20,
    max_states: int = 20_000,
    seconds: float = 10.0,
) -> AgentTable:
    """Let a language model write the rules that a planner plays with.

    Args:
        task: the agent has a language model, unless there is a writer; the scenario is a game for one player.
        writer: the agent whose language model writes; the agent itself when not given.
        episodes: of random play that rules are compared with.
        shown: how many of them the writer reads.
        rounds: how often it may write.
        seeds: training seeds that the planner is compared with the agent on.
        max_states: how many states the planner looks at.
        seconds: of processor time that it has for a decision.
    """
    check_sandbox(seconds)
    several = [name for name in task.scenarios if len(scenario_of(name).game().players) > 1]
    if several or len(task.scenarios) > 1:
        raise UsageError(f"code-model writes the rules of one game for one player, got {', '.join(task.scenarios)}")
    asked, options = Writer(task, writer, "code-model"), {"max_states": max_states, "seconds": seconds}
    compared, found = task.seeds(seeds), list[Tested]()
    before = after = None
    try:
        before = task.play(task.agent, compared, "before")
        random = task.play({"spec": "random"}, task.seeds(episodes, after=seeds), "random")
        steps = seen_in(random)
        (scenario,) = random.scenarios.values()
        transcripts = "\n\n".join(transcript(record, scenario) for record in random.records[:shown])
        while len(found) < rounds and not (found and found[-1].passed == len(steps)):
            about: dict[str, str] = {}
            if (best := _best(found)) is not None and best.file is not None:
                failures = "\n\n".join(best.failures[:SHOWN_FAILURES])
                source = best.file.read_text(encoding="utf-8").strip()
                about = {"source": source, "passed": str(best.passed), "total": str(len(steps)), "failures": failures}
            found.append(tested(asked.write(transcripts, **about), steps, options))
            task.say(f"round {len(found)}: the rules are right about {found[-1].passed} of {len(steps)} steps")
        if (best := _best(found)) is not None and best.passed:
            after = task.play({"spec": f"rules:{best.file}", **options}, compared, "planned")
    except BudgetSpentError as spent:
        task.say(str(spent))
    files = [one.file and f"programs/{one.file.name}" for one in found]
    told = [
        {"round": number, "file": file, "right": one.passed, "failures": one.failures}
        for number, (one, file) in enumerate(zip(found, files, strict=True), 1)
    ]
    keep_programs(task, told)
    best = _best(found)
    if before is None or after is None or best is None or best.file is None or not task.is_better(after, before):
        return task.agent
    return handed_back(task, "rules", best.file, options)


def _best(found: Sequence[Tested]) -> Tested | None:
    """Return the rules that explain most, the last of equals, so that a repair continues."""
    return max(reversed(found), key=lambda one: one.rank, default=None)


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


def tested(file: Path | None, steps: Sequence[SeenStep], options: dict[str, Any]) -> Tested:
    """Compare rules with real play: a step is explained if it is among the outcomes of what was played."""
    if file is None:
        return Tested(None, 0, ("the answer has no block with a program",))
    source, seconds = file.read_text(encoding="utf-8"), options["seconds"]
    with Sandbox(source, harness=RulesPlayer.harness, seconds=seconds) as sandbox:
        if (wrong := wrong_with(sandbox, RulesPlayer.functions)) is not None:
            return Tested(file, 0, (f"The program {wrong}",))
        seen = (text for step in steps for text in (step.observation, step.after) if text is not None)
        texts = list(dict.fromkeys(seen))
        said = dict(zip(texts, sandbox.calls([Call("predict", (text,)) for text in texts]), strict=True))
    faults = [fault for step in steps if (fault := _fault(step, said)) is not None]
    return Tested(file, len(steps) - len(faults), tuple(faults[:SHOWN_FAILURES]))


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
