"""Group advantages against a plain loop, in every order, and what must be exactly zero or refused."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import ConfigError, episode_return, group_advantages

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


def test_discount():
    assert episode_return([1.0, 1.0, 1.0], 0.5) == 1.75
    assert episode_return([]) == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_not_finite_returns_are_refused_with_their_place(bad):
    with pytest.raises(ValueError, match=r"episodes \[1\]"):
        group_advantages([0.0, bad, 1.0], [0, 0, 0])


@pytest.mark.parametrize(("returns", "groups"), [([1.0], [0, 0]), ([], []), ([[1.0]], [0])])
def test_shapes_that_do_not_fit(returns, groups):
    with pytest.raises(ValueError, match="one group id per return"):
        group_advantages(returns, groups)


@pytest.mark.parametrize("option", ["baseline", "scale"])
def test_unknown_options(option):
    with pytest.raises(ConfigError, match=rf"{option} must be one of .*, got 'median'"):
        group_advantages([1.0, 2.0], [0, 0], **{option: "median"})  # type: ignore[arg-type]
