"""Credit for what was chosen and not for what was said before it: another method's advantages on some parts alone.

Tokens of the named parts (by default ``<plan>`` and ``<action>``) get the base method's advantages, all others 0. So
the update leaves reasoning as it is, but for what moves it through shared weights. That is right for reasoning that
only reports: a report is as true before a good move as before a bad one, so what a return says of it is noise. It is
wrong for reasoning that decides: that of the package's own tiny models mentions a cell beside the way only when it is
about to go there, and without credit for that they learn far more slowly (docs/research/credit/recipe.md).

A response without any of the parts keeps its advantages on all of its tokens: its form is what has to be learnt then.
This method is our own.
"""

from typing import ClassVar

import numpy as np

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, Bools, Credit, Floats, Segment, StepCredit, Trajectory
from research.methods.credit.composed import Composed


@configured
class Choice(Composed):
    """Another method's advantages, on the tokens of the choice alone."""

    credited: tuple[str, ...] = ("plan", "action")
    """The tags of the parts whose tokens get advantages."""

    adds: ClassVar[frozenset[str]] = frozenset({"segments"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.credited:
            raise ValueError("credited is empty, so nothing would be learnt; accepted: names of tags, such as action")

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        advantages = [self._on_parts(*each) for each in zip(batch.trajectories, base.advantages, strict=True)]
        return base._replace(advantages=advantages)

    def _on_parts(self, trajectory: Trajectory, advantages: StepCredit) -> list[Floats]:
        if trajectory.segments is None:
            raise ValueError('credit = "choice" needs segments, and this batch has none')
        steps = zip(trajectory.segments, trajectory.response_ids, advantages, strict=True)
        return [np.where(self._is_credited(parts, len(ids)), own, 0.0) for parts, ids, own in steps]

    def _is_credited(self, parts: tuple[Segment, ...], tokens: int) -> Bools:
        chosen = np.zeros(tokens, dtype=np.bool_)
        for part in parts:
            if part.name in self.credited:
                chosen[part.start : part.stop] = True
        return chosen if chosen.any() else ~chosen
