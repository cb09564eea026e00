"""Methods that tell steps apart: figures worked out by hand, and plain loops over random batches."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo.credit import Batch
from tests.agents.msgrpo.credit.plain import Plain, Table, advantages, check, flat, random_batch, z
from tests.agents.msgrpo.hand_made import batch, trajectory


def plain_hgpo(given: Batch, longest: int, alpha: float, base: bool) -> Table:
    plain = Plain(given, 0.95)

    def formula(i: int, t: int) -> float:
        parts = [(0, z(plain.returns[i], [plain.returns[j] for j, _ in plain.steps(i)]))] if base else []
        for k in range(1, longest + 2):
            if t + 1 < k:
                continue
            mine = plain.played[i].states[t + 1 - k : t + 1]
            like = [
                plain.to_go[j][u]
                for j, u in plain.steps(i)
                if u + 1 >= k and plain.played[j].states[u + 1 - k : u + 1] == mine
            ]
            parts.append((k, z(plain.to_go[i][t], like, statistics.pstdev)))
        weights = [((k + 1) ** alpha, value) for k, value in parts if value != 0]
        total = sum(w for w, _ in weights)
        return sum(w * value for w, value in weights) / total if weights else 0.0

    return plain.table(formula)


def plain_g2po(given: Batch, std: bool) -> Table:
    plain = Plain(given, 0.95)
    played = plain.played

    def value(i: int, t: int) -> float:
        if t == len(plain.rewards[i]):
            return 0.0
        return statistics.fmean(
            plain.to_go[j][u] for j, u in plain.steps(i) if played[j].states[u] == played[i].states[t]
        )

    def target(i: int, t: int) -> float:
        return plain.rewards[i][t] + 0.95 * value(i, t + 1)

    def compare(mine: float, all_of_them: list[float]) -> float:
        return z(mine, all_of_them) if std else mine - statistics.fmean(all_of_them)

    def formula(i: int, t: int) -> float:
        same = [(j, u) for j, u in plain.steps(i) if played[j].states[u] == played[i].states[t]]
        return (
            compare(plain.returns[i], [plain.returns[j] for j in plain.group(i)])
            + compare(target(i, t), [target(j, u) for j, u in same])
            + compare(target(i, t) - value(i, t), [target(j, u) - value(j, u) for j, u in plain.steps(i)])
        )

    return plain.table(formula)


def plain_salt(given: Batch) -> Table:
    plain = Plain(given, 1.0)

    def edge(i: int, t: int) -> tuple[Any, ...]:
        played, last = plain.played[i], t + 1 == len(plain.rewards[i])
        action = played.actions[t] if played.valid[t] else "invalid"
        after = ("end", played.terminated, plain.rewards[i][t]) if last else (played.states[t + 1],)
        return (played.states[t], action, *after)

    def formula(i: int, t: int) -> float:
        through = {j for j, u in plain.steps(i) if edge(j, u) == edge(i, t)}
        whole = [plain.returns[j] for j in plain.group(i)]
        return statistics.fmean(z(plain.returns[j], whole) for j in through)

    return plain.table(formula)


def plain_mt_grpo(given: Batch, weight: float) -> Table:
    plain = Plain(given, 1.0)

    def formula(i: int, t: int) -> float:
        turn = [plain.rewards[j][t] for j in plain.group(i) if t < len(plain.rewards[j])]
        whole = [plain.returns[j] for j in plain.group(i)]
        return z(plain.returns[i], whole) + weight * z(plain.rewards[i][t], turn)

    return plain.table(formula)


PLAIN: dict[str, tuple[str, dict[str, Any], Callable[[Batch], Table]]] = {
    "hgpo": ("hgpo", {}, lambda b: plain_hgpo(b, 2, 1.0, base=False)),
    "hgpo with base": ("hgpo", {"history": 1, "alpha": 2.0, "base": True}, lambda b: plain_hgpo(b, 1, 2.0, base=True)),
    "g2po": ("g2po", {}, lambda b: plain_g2po(b, std=False)),
    "g2po divided": ("g2po", {"scale": "group_std"}, lambda b: plain_g2po(b, std=True)),
    "salt": ("salt", {}, plain_salt),
    "mt_grpo": ("mt_grpo", {"turn_weight": 0.5}, lambda b: plain_mt_grpo(b, 0.5)),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", PLAIN)
def test_equals_the_plain_formula(case, seed):
    name, settings, reference = PLAIN[case]
    given = random_batch(seed)
    check(advantages(name, given, **settings), reference(given), rtol=1e-7, atol=1e-9)


def test_hgpo_by_hand():
    """Discount 1, K = 1. X: A B paid 1; Y: C B paid 3; W: A B paid 5.

    k = 1, at B: 1, 3, 5 with a mean of 3 and a population std of sqrt(8/3). k = 2: (A, B) holds 1 and 5, with a mean of
    3 and a std of 2; (C, B) is alone. The weights are 2 and 3. At A, returns-to-go are 1 and 5 as well, for k = 1 only.
    """
    given = batch(trajectory([0, 1], "AB"), trajectory([0, 3], "CB"), trajectory([0, 5], "AB"))
    found = advantages("hgpo", given, history=1, discount=1.0)
    mixed = (2 * 2 / math.sqrt(8 / 3) + 3 * 1) / 5
    check(found, [[-1, -mixed], [0, 0], [1, mixed]], rtol=1e-5, atol=1e-9)
    undivided = advantages("hgpo", given, history=1, discount=1.0, scale="none")
    check(undivided, [[-2, -2], [0, 0], [2, 2]])


@pytest.mark.parametrize("unit", [1.0, 0.06, 0.1])
def test_hgpo_takes_rounding_for_nothing(unit):
    """At B the first episode has the mean of the six: k = 1 says nothing of it, in whatever unit rewards are paid."""
    paid = zip([3, 1, 4, 4, 2, 4], ["AB", "AB", *["CB"] * 4], strict=True)
    found = advantages("hgpo", batch(*[trajectory([0, unit * each], own) for each, own in paid]), discount=1.0)
    assert found[0][1] == pytest.approx(1.0, abs=1e-4)


def marshal_batch() -> Batch:
    task = EpisodeTask.of("tic-tac-toe", 0)
    return batch(
        trajectory([0, 2], player="player_0", task=task, group=0),
        trajectory([4], player="player_0", task=task, group=1),
        trajectory([-1, 1], player="player_1", task=task, group=2),
    )


def test_marshal_by_hand():
    """The seats' mean rewards are 2 and 0; without them -2, 0 | 2 | -1, 1, whose std is sqrt(10 / 4).

    So divided, and summed up from behind: -2, 0 | 2 | 0, 1 in units of that. The seats' means are 0 and 1/2, and
    -2, 0 | 2 | -1/2, 1/2 have the sum 0 and the squares 8.5, a std of sqrt(8.5 / 4).
    """
    std = math.sqrt(8.5 / 4)
    expected = [[-2 / std, 0], [2 / std], [-0.5 / std, 0.5 / std]]
    check(advantages("marshal", marshal_batch()), expected, rtol=1e-5, atol=1e-9)


def test_marshal_by_distinct_values():
    """One seat with rewards -1, 0 | 0, 1 | 0 and no whitening to think of: mean 0, std sqrt(1/2).

    Summed up: -1, 0 | 1, 1 | 0 in units of that; over steps their mean is 1/5, over the distinct -1, 0, 1 it is 0.
    """
    given = batch(trajectory([-1, 0]), trajectory([0, 1]), trajectory([0]))
    plain, distinct = advantages("marshal", given), advantages("marshal", given, means="distinct")
    # whitening centres over all steps in the end, so with one seat both give the same
    check(plain, distinct, rtol=1e-5, atol=1e-9)
    two = batch(*given.trajectories, trajectory([3, 3], player="player_1"))
    std = math.sqrt(1 / 3)  # of -1, 0, 0, 1, 0 and 0, 0 over n - 1 = 6
    values = np.array([-1, 0, 1, 1, 0, 0, 0]) / std
    expected = (values - values.mean()) / values.std(ddof=1)
    found = flat(advantages("marshal", two, means="distinct"))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found != pytest.approx(flat(advantages("marshal", two)), rel=1e-3)


def test_gagpo_by_hand():
    """G is 0.5, 1 and 0, 0, so V(A) = 0.25 and V(B) = 0.5; deltas are 0, 0.5 and 0, -0.5."""
    given = batch(trajectory([0.0, 1.0], "AB"), trajectory([0.0, 0.0], "AB"))
    estimated = [0.5 * 0.5 * 0.5, 0.5, -0.5 * 0.5 * 0.5, -0.5]
    spread = math.sqrt((2 * 0.125**2 + 2 * 0.5**2) / 3) + 1e-6
    found = advantages("gagpo", given, lam=0.5, discount=0.5)
    np.testing.assert_allclose(flat(found), np.array(estimated) / spread)


def test_beacon_by_hand():
    """Milestones at the second and the fourth step: what comes after the first is another segment."""
    given = batch(trajectory([0.0, 1.0, 0.0, 0.5]), trajectory([0.0, 0.0]))
    found = advantages("beacon", given, discount=0.5)
    check(found, [[0.75 + step for step in (0.125, 0.625, -0.125, 0.125)], [-0.75 - 0.375] * 2])
    check(advantages("beacon", given, step_weight=0.0), advantages("dr_grpo", given))
