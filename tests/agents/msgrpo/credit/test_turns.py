"""Turn-level PPO and T-PPO against GAE written out as sums, on ragged batches, and the identities that hold exactly."""

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch, Trajectory
from tests.agents.msgrpo.credit.plain import Plain, Table, advantages, check, random_batch, z
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def ragged(seed: int = 0) -> Batch:
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


def flat(arrays: Any) -> list[float]:
    return [float(x) for array in arrays for x in array]


@pytest.mark.parametrize("name", ["ppo_turn", "tppo"])
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 0.7), (0.5, 0.0), (1.0, 0.95)])
def test_advantages_targets_and_whitening_are_those_of_the_formula(name, gamma, lam):
    given = ragged()
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
    assert [len(each) for each in white.advantages] == [len(each) for each in given.trajectories]
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
    assert flat(credit.advantages) == [0.0] * 4
    assert credit.draw_weight.tolist() == [0.0] * 4
    empty = METHODS.make("ppo_turn").assign(Batch([]), RNG)
    assert empty.advantages == []


def test_no_values_and_wrong_settings_are_said_in_words():
    with pytest.raises(ValueError, match="needs = frozenset"):
        METHODS.make("ppo_turn").assign(batch(Trajectory(group=0, rewards=np.ones(2))), RNG)
    with pytest.raises(ConfigError, match=r"\[credit.tppo\] lam must be a number from 0 to 1, got 1.5"):
        METHODS.make("tppo", {"lam": 1.5})


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
