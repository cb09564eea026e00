"""Advantages of groups, steps and turns against plain loops and formulas, in every order; batches as plain data."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import ConfigError, group_advantages
from agents.msgrpo.credit import METHODS, Batch, Trajectory
from agents.msgrpo.credit.batch import Credit
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


Table = list[list[float]]  # a number for every step of every episode


def advantages(name: str, given: Batch, **settings: Any) -> Table:
    credit = METHODS.make(name, settings).assign(given, RNG)
    for each, played in zip(credit.advantages, given.trajectories, strict=True):
        assert np.shape(each) == (len(played),)
    return [np.asarray(each).tolist() for each in credit.advantages]


def flat(arrays: Any) -> list[float]:
    return [float(x) for array in arrays for x in array]


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


def with_values(seed: int = 0) -> Batch:
    """Six episodes of one to five steps with random rewards and values; every second one was cut off."""
    rng = np.random.default_rng(seed)
    episodes = []
    for i, steps in enumerate((3, 1, 5, 1, 2, 4)):
        rewards, values = rng.normal(size=steps).tolist(), rng.normal(size=steps)
        episodes.append(trajectory(rewards, group=i // 2, values=values, terminated=i % 2 == 0))
    return batch(*episodes)


def plain_gae(rewards: Any, values: Any, after: float, gamma: float, lam: float) -> list[float]:
    following = [*values[1:], after]
    deltas = [r + gamma * n - v for r, v, n in zip(rewards, values, following, strict=True)]
    return [sum((gamma * lam) ** (u - t) * deltas[u] for u in range(t, len(deltas))) for t in range(len(deltas))]


@pytest.mark.parametrize("name", ["ppo_turn", "tppo"])
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.7)])
def test_advantages_targets_and_whitening_are_those_of_the_formula(name, gamma, lam):
    given = with_values()
    wanted = []
    for each in given.trajectories:
        goes_on = name == "tppo" and not each.terminated
        wanted.append(plain_gae(each.rewards, each.values, float(each.values[-1]) if goes_on else 0.0, gamma, lam))
    settings = {"discount": gamma, "lam": lam}
    plain = METHODS.make(name, settings | {"whiten": False}).assign(given, RNG)
    np.testing.assert_allclose(flat(plain.advantages), flat(wanted), rtol=1e-12, atol=1e-12)
    white = METHODS.make(name, settings).assign(given, RNG)
    np.testing.assert_allclose(
        flat(white.advantages), [z(one, flat(wanted)) for one in flat(wanted)], rtol=1e-10, atol=1e-12
    )
    # the critic learns A + V whether A is whitened or not
    targets = [a + v for a, v in zip(flat(wanted), flat(t.values for t in given.trajectories), strict=True)]
    for credit in (plain, white):
        assert credit.value_targets is not None
        np.testing.assert_allclose(flat(credit.value_targets["state"]), targets, rtol=1e-12, atol=1e-12)
    sizes = [np.mean(np.abs(each)) for each in white.advantages]
    np.testing.assert_allclose(white.draw_weight, sizes)


def test_equal_advantages_are_no_signal_and_an_empty_batch_is_none():
    same = batch(*[trajectory([1.0], values=np.array([0.3])) for _ in range(4)])
    credit = METHODS.make("ppo_turn").assign(same, RNG)
    assert flat(credit.advantages) == credit.draw_weight.tolist() == [0.0] * 4
    assert METHODS.make("ppo_turn").assign(Batch([]), RNG).advantages == []


# ---------------------------------------------------------------- gigpo and returns-to-go


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


@pytest.mark.parametrize("seed", range(2))
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


finite = st.floats(-100, 100).map(lambda x: round(x, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(finite, st.integers(0, 4)), min_size=1, max_size=40))
def test_group_advantages_equal_the_plain_formula(pairs):
    returns, groups = [p[0] for p in pairs], [p[1] for p in pairs]
    wanted = [z(value, [r for r, g in pairs if g == group]) for value, group in pairs]
    np.testing.assert_allclose(group_advantages(returns, groups), wanted, rtol=1e-9, atol=1e-9)


def test_options():
    returns = [1.0, 2.0, 6.0]
    np.testing.assert_allclose(group_advantages(returns, [0] * 3, scale="none"), [-2, -1, 3])
    loo = group_advantages(returns, [0] * 3, baseline="leave_one_out", scale="none")
    np.testing.assert_allclose(loo, [1 - 4, 2 - 3.5, 6 - 1.5])
    np.testing.assert_allclose(group_advantages(returns, [0] * 3, baseline="none", scale="none"), returns)
    batch = group_advantages([1.0, 2.0, 10.0, 30.0], [0, 0, 1, 1], scale="batch_std")
    np.testing.assert_allclose(batch, np.array([-0.5, 0.5, -10, 10]) / np.std([-0.5, 0.5, -10, 10], ddof=1), rtol=1e-5)


def test_refusals():
    for returns, groups, options, words in (
        ([0.0, float("nan"), 1.0], [0, 0, 0], {}, r"episodes \[1\]"),
        ([1.0], [0, 0], {}, "one group id per return"),
        ([[1.0]], [0], {}, "one group id per return"),
        ([1.0, 2.0], [0, 0], {"baseline": "median"}, "baseline must be one of .*, got 'median'"),
        ([1.0, 2.0], [0, 0], {"eps": -1.0}, "eps must be at least 0"),
    ):
        with pytest.raises(ValueError, match=words):
            group_advantages(returns, groups, **options)
    with pytest.raises(ValueError, match="needs = frozenset"):
        METHODS.make("ppo_turn").assign(batch(Trajectory(group=0, rewards=np.ones(2))), RNG)
    with pytest.raises(ConfigError, match=r"\[credit.tppo\] lam must be a number from 0 to 1, got 1.5"):
        METHODS.make("tppo", {"lam": 1.5})


# ---------------------------------------------------------------- batches and credit as plain data


def test_returns_and_returns_to_go_by_hand():
    one = trajectory([1.0, 0.0, -2.0])
    assert one.returned(0.5) == 0.5  # 1 + 0 - 2/4
    assert one.returns_to_go(0.5).tolist() == [0.5, -1.0, -2.0]  # -2; 0 - 1; 1 - 1/2
    together = batch(one, trajectory([3.0]))
    assert together.returns().tolist() == [-1.0, 3.0]
    assert [each.tolist() for each in together.returns_to_go()] == [[-1.0, -2.0, -2.0], [3.0]]


def test_draw_weights_are_the_mean_size_of_an_episodes_advantages():
    per_token = [np.array([1.0, -1.0, 4.0]), np.array([-2.0])]
    assert Credit.of([np.array([1.0, -3.0]), per_token, np.empty(0)]).draw_weight.tolist() == [2.0, 2.0, 0.0]
    # a mean of three equal numbers may be off by rounding, and draws would then differ from the plain method's
    credit = Credit.per_episode(batch(trajectory([0, 0, 1]), trajectory([0, 0, 0])), np.array([0.1, -0.7]))
    assert credit.draw_weight.tolist() == [0.1, 0.7]
    assert [each.tolist() for each in credit.advantages] == [[0.1] * 3, [-0.7] * 3]


def test_groups_and_visits_keep_their_order_and_places():
    together = batch(
        trajectory([0, 0], "sa", group="x"), trajectory([0], "s", group="y"), trajectory([0, 0, 0], "ssb", group="x")
    )
    assert together.groups == {"x": [0, 2], "y": [1]}
    assert together.visits() == {
        ("x", "s"): [(0, 0), (2, 0), (2, 1)], ("x", "a"): [(0, 1)], ("y", "s"): [(1, 0)], ("x", "b"): [(2, 2)]
    }  # fmt: skip
    assert together.only([2]).groups == {"x": [0]}
