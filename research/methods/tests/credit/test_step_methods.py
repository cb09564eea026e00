"""Methods that tell steps apart: figures worked out by hand, and plain loops over random batches."""

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from agents.msgrpo.credit import Batch
from tests.agents.msgrpo.credit.plain import Plain, Table, advantages, check, random_batch, z
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


@pytest.mark.parametrize("unit", [1.0, 0.06, 0.1])
def test_hgpo_takes_rounding_for_nothing(unit):
    """At B the first episode has the mean of the six: k = 1 says nothing of it, in whatever unit rewards are paid."""
    paid = zip([3, 1, 4, 4, 2, 4], ["AB", "AB", *["CB"] * 4], strict=True)
    found = advantages("hgpo", batch(*[trajectory([0, unit * each], own) for each, own in paid]), discount=1.0)
    assert found[0][1] == pytest.approx(1.0, abs=1e-4)
