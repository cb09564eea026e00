"""GiGPO and returns-to-go: figures worked out by hand, and plain loops over random batches."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

from agents.msgrpo.credit import Batch
from tests.agents.msgrpo.credit.plain import Plain, Table, advantages, check, random_batch, z
from tests.agents.msgrpo.hand_made import batch, trajectory


def plain_rtg(given: Batch) -> Table:
    plain = Plain(given, 1.0)

    def formula(i: int, t: int) -> float:
        others = [plain.to_go[j][t] for j in plain.group(i) if j != i and t < len(plain.rewards[j])]
        return plain.to_go[i][t] - (statistics.fmean(others) if others else 0.0)

    return plain.table(formula)


def plain_gigpo(given: Batch, std: bool, steps_left: bool) -> Table:
    plain = Plain(given, 0.95)
    played = plain.played

    def formula(i: int, t: int) -> float:
        whole = [plain.returns[j] for j in plain.group(i)]
        here = [
            plain.to_go[j][u]
            for j, u in plain.steps(i)
            if played[j].states[u] == played[i].states[t]
            and (not steps_left or played[j].steps_left[u] == played[i].steps_left[t])
        ]
        if std:
            return z(plain.returns[i], whole) + 0.5 * z(plain.to_go[i][t], here)
        return plain.returns[i] - statistics.fmean(whole) + 0.5 * (plain.to_go[i][t] - statistics.fmean(here))

    return plain.table(formula)


PLAIN: dict[str, tuple[str, dict[str, Any], Callable[[Batch], Table]]] = {
    "rtg": ("rtg", {}, plain_rtg),
    "gigpo": ("gigpo", {"step_weight": 0.5}, lambda b: plain_gigpo(b, std=False, steps_left=False)),
    "gigpo divided": ("gigpo", {"step_weight": 0.5, "scale": "group_std"}, lambda b: plain_gigpo(b, True, False)),
    "gigpo by steps left": (
        "gigpo",
        {"step_weight": 0.5, "same": "state_and_steps_left"},
        lambda b: plain_gigpo(b, std=False, steps_left=True),
    ),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", PLAIN)
def test_equals_the_plain_formula(case, seed):
    name, settings, reference = PLAIN[case]
    given = random_batch(seed)
    check(advantages(name, given, **settings), reference(given), rtol=1e-7, atol=1e-9)


def test_rtg_divided_by_the_spread():
    """At t = 0: 3, 1, 5 with a std of 2; at t = 1: 2 and 4 with sqrt 2; alone at t = 2 it stays as it is."""
    given = batch(trajectory([1, 2]), trajectory([1]), trajectory([1, 0, 4]))
    root = math.sqrt(2)
    check(advantages("rtg", given, scale="group_std"), [[0, -2 / root], [-3 / 2], [3 / 2, 2 / root, 4]], rtol=1e-5)


@pytest.mark.parametrize("same", ["state", "state_and_steps_left"])
@pytest.mark.parametrize("scale", ["none", "group_std"])
def test_gigpo_is_the_sum_of_two_comparisons(same, scale):
    given = random_batch(5)
    episodes = advantages("msgrpo", given, scale=scale)
    steps = advantages("msgrpo", given, scale=scale, among=same, spread="to_go", discount=0.95)
    both = [[e + s for e, s in zip(*rows, strict=True)] for rows in zip(episodes, steps, strict=True)]
    assert advantages("gigpo", given, scale=scale, same=same) == both
