"""The formulas of advantages: every registered method of credit, and other choices of a comparison."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from agents.msgrpo import ConfigError, Method, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Credit, CreditMethod, Floats
from research.credit.checker.formula.played import Played

BASELINES, SCALES = ("mean", "others", "leave_one_out", "none"), ("none", "group_std", "batch_std", "returns_std")
EPS = (1e-6, 1e-4, 1e-8, 1e-5, 0.0)

Maker = Callable[[], CreditMethod]


class Formula(NamedTuple):
    """A method of credit with its settings."""

    name: str
    make: Maker
    with_eps: Callable[[float], CreditMethod] | None = None  # the same with another number added to its deviations
    pooled: bool = False  # whether all steps of a group are compared as one set


@dataclass(frozen=True)
class PopulationStd(Method):
    """MS-GRPO's advantages with the standard deviation of a population, NumPy's default, in place of a sample's."""

    eps: float
    needs: ClassVar[frozenset[str]] = frozenset()

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, advantages = batch.returns(), np.zeros(len(batch))
        for members in batch.groups.values():
            own = returns[members]
            advantages[members] = (own - own.mean()) / (own.std() + self.eps) if np.ptp(own) else 0.0
        return Credit.per_episode(batch, advantages)


def registered(names: Iterable[str] = ()) -> Iterator[Formula]:
    """Yield methods with their defaults; a ConfigError if there is none of a name."""
    shared = vars(MSGRPOConfig())
    for name in names or METHODS.names:
        METHODS.check(name)
        yield Formula(name, partial(METHODS.make, name, {}, shared))


def formulas(method: str = "") -> Iterator[Formula]:
    """Yield every method with its defaults, then other choices of a comparison; a given ``method`` alone.

    Raises:
        ConfigError: there is no method of that name.
    """
    yield from registered([method] if method else ())
    if method:
        return
    shared = vars(MSGRPOConfig())
    yield Formula("msgrpo with the population's std", partial(PopulationStd, EPS[0]), PopulationStd)
    for spread, among, baseline, scale in product(("episode", "to_go"), ("group", "time", "state"), BASELINES, SCALES):
        choice = {"spread": spread, "among": among, "baseline": baseline, "scale": scale}

        def with_eps(eps: float, choice: dict[str, str] = choice) -> CreditMethod:
            return METHODS.make("msgrpo", {**choice, "eps": eps}, shared)

        said = ", ".join(f"{name} = {value}" for name, value in choice.items())
        pooled = (spread, among) == ("to_go", "group") and baseline != "none"
        others = None if scale == "none" else with_eps
        yield Formula(f"msgrpo with {said}", partial(with_eps, EPS[0]), others, pooled)


def assigned(shown: Played, make: Maker) -> list[Floats] | None:
    """Return (T,) what a method assigns to each episode, by update; ``None`` if it needs what the rows don't have."""
    method = make()
    told = ("old_logprobs", "values")
    available = {name for name in told if all(getattr(each, name) is not None for each in shown.trajectories)}
    if not method.needs <= available:
        return None
    result = [np.empty(0)] * len(shown.rows)
    for number, indices in enumerate(shown.by_update()):
        batch = Batch([shown.trajectories[i] for i in indices], iteration=number)
        try:
            with np.errstate(all="ignore"):
                credit = method.assign(batch, np.random.default_rng(0))
        except (ConfigError, ValueError, LookupError, AttributeError, TypeError):
            return None  # it compares states, or what else is not in the rows
        for i, advantages in zip(indices, credit.advantages, strict=True):
            own = isinstance(advantages, np.ndarray)
            result[i] = np.asarray(advantages if own else [float(np.mean(each)) for each in advantages])
    return result if np.isfinite(np.concatenate(result)).all() else None
