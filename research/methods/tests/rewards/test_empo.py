"""EMPO's payments by hand."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.rewards import REWARDS
from tests.agents.msgrpo.hand_made import batch, trajectory


def answering(states: str, actions: str, **others: Any) -> Any:
    """An episode through states of one letter by actions of one letter, with a limit of three rounds."""
    return trajectory([0.0] * len(states), list(states), actions=tuple(actions), horizon=3, **others)


def test_an_answer_is_paid_the_share_of_its_groups_episodes_that_gave_it_there():
    """In s three of four say r, one d; in a, with two rounds left, two of four say r; an invalid answer is paid 0."""
    played = batch(
        answering("sab", "rrx"), answering("sa", "rr"), answering("s", "r"),
        answering("sa", "dd", valid=np.array([True, False])), answering("s", "r", group=1),
    )  # fmt: skip
    rule = REWARDS.make("empo")
    paid = [each.tolist() for each in rule.pay(played)]
    assert paid == [
        pytest.approx([0.75 / 3, 0.5 / 3, 0.25 / 3]), pytest.approx([0.75 / 2, 0.5 / 2]), [0.75], [0.25 / 2, 0.0], [1.0]
    ]  # fmt: skip
    of_s, of_a = -0.75 * np.log(0.75) - 0.25 * np.log(0.25), np.log(3) - 2 / 3 * np.log(2)
    assert rule.metrics["answer_entropy"] == pytest.approx((4 * of_s + 3 * of_a) / 7)
    # of answers in s, 0.41 of the largest entropy; of those in a, 0.58
    (first, *_) = REWARDS.make("empo", {"least_entropy": 0.5}).pay(played)
    assert first.tolist() == pytest.approx([0.0, 0.5 / 3, 0.0])
