"""Batches and credit as plain data: returns, groups, visits, draw weights."""

import numpy as np

from agents.msgrpo.credit.arithmetic import standardised
from agents.msgrpo.credit.batch import Credit, mean_size
from tests.agents.msgrpo.hand_made import batch, trajectory


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
    assert mean_size(per_token) == 2.0


def test_one_advantage_for_a_whole_episode_is_its_own_draw_weight_to_the_bit():
    """A mean of three equal numbers may be off by rounding, and draws would then differ from the plain method's."""
    together = batch(trajectory([0, 0, 1]), trajectory([0, 0, 0]))
    credit = Credit.per_episode(together, np.array([0.1, -0.7]))
    assert credit.draw_weight.tolist() == [0.1, 0.7]
    assert [each.tolist() for each in credit.advantages] == [[0.1] * 3, [-0.7] * 3]


def test_standardised_values():
    np.testing.assert_allclose(standardised(np.array([1.0, 3.0])), [-np.sqrt(0.5), np.sqrt(0.5)], rtol=1e-5)
    np.testing.assert_allclose(standardised(np.array([1.0, 3.0]), ddof=0), [-1, 1], rtol=1e-5)
    assert standardised(np.array([0.1, 0.1, 0.1])).tolist() == [0.0, 0.0, 0.0]
    assert standardised(np.array([5.0])).tolist() == [0.0]
