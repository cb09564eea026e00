"""Methods that change another method's advantages: EMPG and Choice. ``base`` names it; they pass on its needs."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import Method, configured, learner_of
from agents.msgrpo.credit import METHODS, Batch, Credit, CreditMethod, Floats, StepCredit


@configured
class Composed:
    """A method that takes another one's credit and changes it."""

    base: str = "msgrpo"
    """The method whose advantages are taken; its own settings stand in its own table, [credit.NAME]."""

    adds: ClassVar[frozenset[str]] = frozenset()  # needed besides what the base method needs

    def __post_init__(self) -> None:
        if issubclass(METHODS.find(self.base), type(self)):
            raise ValueError(f"base = {self.base!r} can't be used: accepted is another method of credit")
        self._method: CreditMethod = METHODS.make(self.base)

    def compose(self, make: Callable[[str], CreditMethod]) -> None:
        self._method = make(self.base)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(self._method.needs) | self.adds

    @property
    def heads(self) -> Mapping[str, Any]:
        return self._method.heads

    def beside(self, *parts: Any) -> Any:
        return self._method.beside(*parts)

    @property
    def learnt_by(self) -> str:
        return learner_of(self._method)

    def state_dict(self) -> dict[str, Any]:
        return self._method.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state and type(self._method).load_state_dict is Method.load_state_dict:
            raise ValueError(f"the base method {self.base!r} learns nothing")
        if state:
            self._method.load_state_dict(state)


@configured
class EMPG(Composed):
    """Another method's advantages, larger if the policy was sure (arXiv 2509.09265).

    With ``H_it`` the mean entropy of the tokens of a response::

        h_it = (H_it - min H) / (max H - min H + 1e-8)      over all steps of the batch
        g_it = exp(-h_it) / mean of exp(-h) over the batch
        A'_it = A_it g_it + zeta exp(-h_i,t+1)              without the bonus at an episode's last step

    less the mean of ``A'`` over all steps, in which a step counts with the mean of its tokens.
    """

    zeta: float = Field(0.05, ge=0)
    """Weight of the bonus for what a step leads to."""

    adds: ClassVar[frozenset[str]] = frozenset({"entropies"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        entropies = [each.entropies for each in batch.trajectories if each.entropies is not None]
        if len(entropies) < len(batch):
            raise ValueError('credit = "empg" needs entropies, and this batch has none')
        everything = np.concatenate(entropies)
        least, most = everything.min(), everything.max()
        sureness = [np.exp(-(each - least) / (most - least + 1e-8)) for each in entropies]
        mean = np.concatenate(sureness).mean()
        modulated: list[StepCredit] = []
        for advantages, sure in zip(base.advantages, sureness, strict=True):
            factors, bonus = sure / mean, np.append(self.zeta * sure[1:], 0.0)
            if isinstance(advantages, np.ndarray):
                modulated.append(advantages * factors + bonus)
            else:
                steps = zip(advantages, factors.tolist(), bonus.tolist(), strict=True)
                modulated.append([tokens * g + b for tokens, g, b in steps])
        level = float(np.concatenate([_per_step(each) for each in modulated]).mean())
        centred: list[StepCredit] = [
            each - level if isinstance(each, np.ndarray) else [tokens - level for tokens in each] for each in modulated
        ]
        # what a critic or a reward model of the base method learns by stays
        return base._replace(advantages=centred, draw_weight=Credit.of(centred).draw_weight)


def _per_step(advantages: StepCredit) -> Floats:
    if isinstance(advantages, np.ndarray):
        return advantages
    return np.array([tokens.mean() if len(tokens) else 0.0 for tokens in advantages])


@configured
class Choice(Composed):
    """Another method's advantages, on the tokens of the choice alone; all other tokens get 0.

    For reasoning that only reports: a report is as true before a good move as before a bad one. It is wrong for
    reasoning that decides (docs/research/credit/recipe.md). A response without any of the parts keeps its advantages:
    its form is what has to be learnt then. The method is our own.
    """

    credited: tuple[str, ...] = ("plan", "action")
    """The tags of the parts whose tokens get advantages."""

    adds: ClassVar[frozenset[str]] = frozenset({"segments"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.credited:
            raise ValueError("credited is empty, so nothing would be learnt; accepted: names of tags, such as action")

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        advantages: list[StepCredit] = []
        for trajectory, steps in zip(batch.trajectories, base.advantages, strict=True):
            if trajectory.segments is None:
                raise ValueError('credit = "choice" needs segments, and this batch has none')
            on_parts: list[Floats] = []
            for parts, ids, own in zip(trajectory.segments, trajectory.response_ids, steps, strict=True):
                chosen = np.zeros(len(ids), dtype=np.bool_)
                for part in parts:
                    if part.name in self.credited:
                        chosen[part.start : part.stop] = True
                on_parts.append(np.where(chosen if chosen.any() else ~chosen, own, 0.0))
            advantages.append(on_parts)
        return base._replace(advantages=advantages)
