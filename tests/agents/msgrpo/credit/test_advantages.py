"""Group advantages against a plain loop, in every order, and what must be exactly zero or refused."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import group_advantages
from agents.msgrpo.credit.batch import Credit
from tests.agents.msgrpo.hand_made import batch, trajectory

finite = st.floats(-100, 100).map(lambda x: round(x, 3))


def plain(returns: list[float], groups: list[int], eps: float = 1e-6) -> list[float]:
    result = []
    for value, group in zip(returns, groups, strict=True):
        mine = [r for r, g in zip(returns, groups, strict=True) if g == group]
        if len(set(mine)) == 1:
            result.append(0.0)
        else:
            result.append((value - statistics.fmean(mine)) / (statistics.stdev(mine) + eps))
    return result


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(finite, st.integers(0, 4)), min_size=1, max_size=40))
def test_equals_the_plain_formula(pairs):
    returns, groups = [p[0] for p in pairs], [p[1] for p in pairs]
    np.testing.assert_allclose(group_advantages(returns, groups), plain(returns, groups), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("baseline", ["mean", "leave_one_out"])
@pytest.mark.parametrize("scale", ["group_std", "batch_std", "none"])
def test_equal_returns_are_exactly_zero(baseline, scale):
    """0.1 has no exact mean of three: rounding must not leave an advantage that sampling would draw."""
    got = group_advantages([0.1, 0.1, 0.1, 5.0], [0, 0, 0, 1], baseline=baseline, scale=scale)
    assert got.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_options():
    returns = [1.0, 2.0, 6.0]
    np.testing.assert_allclose(group_advantages(returns, [0] * 3, scale="none"), [-2, -1, 3])
    loo = group_advantages(returns, [0] * 3, baseline="leave_one_out", scale="none")
    np.testing.assert_allclose(loo, [1 - 4, 2 - 3.5, 6 - 1.5])
    np.testing.assert_allclose(group_advantages(returns, [0] * 3, baseline="none", scale="none"), returns)
    batch = group_advantages([1.0, 2.0, 10.0, 30.0], [0, 0, 1, 1], scale="batch_std")
    np.testing.assert_allclose(batch, np.array([-0.5, 0.5, -10, 10]) / np.std([-0.5, 0.5, -10, 10], ddof=1), rtol=1e-5)


@pytest.mark.parametrize(
    ("returns", "groups", "options", "words"),
    [
        ([0.0, float("nan"), 1.0], [0, 0, 0], {}, r"episodes \[1\]"),
        ([0.0, float("-inf"), 1.0], [0, 0, 0], {}, r"episodes \[1\]"),
        ([1.0], [0, 0], {}, "one group id per return"),
        ([], [], {}, "one group id per return"),
        ([[1.0]], [0], {}, "one group id per return"),
        ([1.0, 2.0], [0, 0], {"baseline": "median"}, "baseline must be one of .*, got 'median'"),
        ([1.0, 2.0], [0, 0], {"scale": "median"}, "scale must be one of .*, got 'median'"),
        ([1.0, 2.0], [0, 0], {"eps": -1.0}, "eps must be at least 0"),
    ],
)
def test_refusals(returns, groups, options, words):
    with pytest.raises(ValueError, match=words):
        group_advantages(returns, groups, **options)


# ---------------------------------------------------------------- batches and credit as plain data


def test_returns_and_returns_to_go_by_hand():
    one = trajectory([1.0, 0.0, -2.0])
    assert one.returned() == -1.0
    assert one.returned(0.5) == 0.5  # 1 + 0 - 2/4
    assert one.returns_to_go().tolist() == [-1.0, -2.0, -2.0]
    assert one.returns_to_go(0.5).tolist() == [0.5, -1.0, -2.0]  # -2; 0 - 1; 1 - 1/2
    together = batch(one, trajectory([3.0]))
    assert together.returns().tolist() == [-1.0, 3.0]
    assert [each.tolist() for each in together.returns_to_go()] == [[-1.0, -2.0, -2.0], [3.0]]


def test_groups_and_visits_keep_their_order_and_places():
    together = batch(
        trajectory([0, 0], ["s", "a"], group="x"),
        trajectory([0], ["s"], group="y"),
        trajectory([0, 0, 0], ["s", "s", "b"], group="x"),
    )
    assert together.groups == {"x": [0, 2], "y": [1]}
    assert together.visits() == {
        ("x", "s"): [(0, 0), (2, 0), (2, 1)],
        ("x", "a"): [(0, 1)],
        ("y", "s"): [(1, 0)],
        ("x", "b"): [(2, 2)],
    }
    assert together.only([2]).groups == {"x": [0]}


def test_draw_weights_are_the_mean_size_of_an_episodes_advantages():
    per_step = np.array([1.0, -3.0])
    per_token = [np.array([1.0, -1.0, 4.0]), np.array([-2.0])]
    credit = Credit.of([per_step, per_token, np.empty(0)])
    assert credit.draw_weight.tolist() == [2.0, 2.0, 0.0]


def test_one_advantage_for_a_whole_episode_is_its_own_draw_weight_to_the_bit():
    """A mean of three equal numbers may be off by rounding, and draws would then differ from the plain method's."""
    together = batch(trajectory([0, 0, 1]), trajectory([0, 0, 0]))
    credit = Credit.per_episode(together, np.array([0.1, -0.7]))
    assert credit.draw_weight.tolist() == [0.1, 0.7]
    assert [each.tolist() for each in credit.advantages] == [[0.1] * 3, [-0.7] * 3]
