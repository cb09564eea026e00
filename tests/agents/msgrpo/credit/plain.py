"""Batches of random steps, and what formulas of credit by step are made of, one number at a time."""

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.msgrpo.credit import METHODS, Batch
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


Table = list[list[float]]  # a number for every step of every episode


def advantages(name: str, given: Batch, **settings: Any) -> Table:
    credit = METHODS.make(name, settings).assign(given, RNG)
    for each, played in zip(credit.advantages, given.trajectories, strict=True):
        assert np.shape(each) == (len(played),)
    return [np.asarray(each).tolist() for each in credit.advantages]


def flat(table: Table) -> list[float]:
    return [value for episode in table for value in episode]


def check(found: Table, expected: Table, **tolerance: float) -> None:
    assert [len(each) for each in found] == [len(each) for each in expected]
    np.testing.assert_allclose(flat(found), flat(expected), **({"rtol": 1e-9, "atol": 1e-12} | tolerance))


def random_batch(seed: int) -> Batch:
    """Fourteen episodes of one to five steps in four interleaved groups (one of a single episode), three states."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation([*("aaaa"), *("bbbbb"), *("cccc"), "d"])
    played = []
    for label in labels.tolist():
        steps = int(rng.integers(1, 6))
        played.append(
            trajectory(
                rng.choice([-0.5, 0.0, 0.25, 1.0], size=steps).tolist(),
                rng.integers(3, size=steps).tolist(),
                group=label,
                actions=tuple(rng.choice(["left", "right"], size=steps).tolist()),
                valid=rng.random(steps) < 0.8,
                terminated=bool(rng.random() < 0.7),
                horizon=6,
            )
        )
    return batch(*played)


def to_go(rewards: list[float], discount: float) -> list[float]:
    return [sum(discount ** (u - t) * rewards[u] for u in range(t, len(rewards))) for t in range(len(rewards))]


def z(value: float, values: list[float], std: Callable[[list[float]], float] = statistics.stdev) -> float:
    if len(values) < 2 or max(values) == min(values):
        return 0.0
    return (value - statistics.fmean(values)) / (std(values) + 1e-6)


class Plain:
    """A batch as lists, and who is in the same group."""

    def __init__(self, given: Batch, discount: float) -> None:
        self.played = given.trajectories
        self.rewards = [t.rewards.tolist() for t in self.played]
        self.to_go = [to_go(r, discount) for r in self.rewards]
        self.returns = [sum(r) for r in self.rewards]
        self.n = len(self.played)

    def group(self, i: int) -> list[int]:
        return [j for j in range(self.n) if self.played[j].group == self.played[i].group]

    def steps(self, i: int) -> list[tuple[int, int]]:
        return [(j, u) for j in self.group(i) for u in range(len(self.rewards[j]))]

    def table(self, formula: Callable[[int, int], float]) -> Table:
        return [[formula(i, t) for t in range(len(self.rewards[i]))] for i in range(self.n)]
