"""Rules of a game that are a program, compared with what happened in real play."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmark import replay
from research.improve.methods.programming.writing import NO_PROGRAM
from research.improve.plays import Play
from research.improve.programs.players import wrong_with
from research.improve.programs.rules import RulesPlayer
from research.improve.programs.sandbox import Answer, Call, Sandbox

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
