"""Credit by trees against their formulas, written down by hand, and what it is where nothing is shared."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Batch
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def episode(path: str, paid: float, tree: str = "T", sure: float = 0.0) -> Any:
    """An episode of the steps that the letters name, paid at its end; step t has log-probabilities ``-sure * t``."""
    logprobs = tuple(np.full(2, -sure * t) for t in range(len(path)))
    rewards = [0.0] * (len(path) - 1) + [paid]
    return trajectory(rewards, list(path), tree=tree, nodes=tuple(path), old_logprobs=logprobs)


def advantages(name: str, given: Batch, **settings: Any) -> list[list[float]]:
    return [np.asarray(each).tolist() for each in METHODS.make(name, settings).assign(given, RNG).advantages]


def test_tree_grpo_adds_what_an_episode_is_worth_in_its_tree_and_in_its_group():
    given = batch(episode("ab", 0, "T"), episode("ac", 1, "T"), episode("d", 1, "U"))
    group = np.array([-2, 1, 1]) / 3 / (np.sqrt(1 / 3) + 1e-6)
    tree = np.array([-0.5, 0.5, 0.0]) / (np.sqrt(0.5) + 1e-6)
    expected = group + tree
    assert [each[0] for each in advantages("tree_grpo", given)] == pytest.approx(expected.tolist())
    assert [len(set(each)) for each in advantages("tree_grpo", given)] == [1, 1, 1]


LEAVES = np.array([-1.0, 1.0, 1.0, -1.0]) / (1 + 1e-6)
"""Returns 0, 1, 1, 0 of one group, whose mean and population std are 1/2."""


def branched(sure: float = 0.0) -> Batch:
    """a is followed by b, twice, and by c; d stands alone: ab-e, ab-f, ac, d."""
    paid = zip(("abe", "abf", "ac", "d"), (0, 1, 1, 0), strict=True)
    return batch(*[episode(path, each, sure=sure) for path, each in paid])


def test_at2po_carries_values_back_from_the_leaves():
    e, f, c, d = LEAVES
    b = (e + f) / 2
    a = (b + c) / 2
    for value in ("child_mean", "child_softmax"):  # all alike sure
        found = advantages("at2po", branched(), value=value)
        assert found == [pytest.approx(each) for each in ([a, b, e], [a, b, f], [a, c], [d])]
    found = advantages("at2po", branched(), value="leaf_mean")
    a = (e + f + c) / 3
    assert found == [pytest.approx(each) for each in ([a, b, e], [a, b, f], [a, c], [d])]


def test_at2po_weighs_steps_by_how_unsure_the_policy_was_there():
    """c is the second step of its episode like b, so those are alike; at the start d has surprise 0 as a has."""
    given = branched(sure=1.0)
    trajectories = list(given.trajectories)
    trajectories[2] = episode("ac", 1, sure=3.0)  # surprise of c 3, of b 1
    e, f, c, d = LEAVES
    b = (e + f) / 2
    a = (np.exp(1) * b + np.exp(3) * c) / (np.exp(1) + np.exp(3))
    found = advantages("at2po", batch(*trajectories))
    assert found == [pytest.approx(each) for each in ([a, b, e], [a, b, f], [a, c], [d])]


def test_at2po_takes_off_the_step_before_the_whole_tree_or_both():
    e, f, c, d = LEAVES
    b = (e + f) / 2
    a = (b + c) / 2
    root = (a + d) / 2
    parent = advantages("at2po", branched(), value="child_mean", advantage="parent")
    assert parent == [
        pytest.approx(each)
        for each in ([a - root, b - a, e - b], [a - root, b - a, f - b], [a - root, c - a], [d - root])
    ]
    whole = advantages("at2po", branched(), value="child_mean", advantage="root")
    assert whole == [
        pytest.approx(each)
        for each in ([a - root, b - root, e - root], [a - root, b - root, f - root], [a - root, c - root], [d - root])
    ]
    both = advantages("at2po", branched(), value="child_mean", advantage="both")
    assert both == [pytest.approx(np.add(x, y).tolist()) for x, y in zip(parent, whole, strict=True)]


def test_without_shared_steps_they_are_ms_grpo():
    given = batch(*[trajectory([0.0, paid], old_logprobs=(np.zeros(2),) * 2) for paid in (0.0, 1.0, 3.0)])
    plain = advantages("msgrpo", given)
    assert advantages("tree_grpo", given) == [pytest.approx(each) for each in plain]  # alone in its tree: nothing more
    population = [[value * np.sqrt(3 / 2) for value in each] for each in plain]
    assert advantages("at2po", given) == [pytest.approx(each, rel=1e-5) for each in population]
