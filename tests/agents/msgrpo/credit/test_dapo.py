"""DAPO's length reward and mask, by hand."""

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Credit
from agents.msgrpo.credit.batch import Batch
from tests.agents.msgrpo.hand_made import batch, trajectory

CUT = np.array([False, True])
# returns 1, 0 and 0; with at most 10 tokens and a cache of 2, responses of 8, 9, 10 and 12 are paid 0, -0.5, -1 and -1
PLAYED = batch(
    trajectory([0.0, 1.0], tokens=[3, 9]),
    trajectory([0.0, 0.0], tokens=[8, 10], cut_off=CUT),
    trajectory([0.0], tokens=[12]),
)


def assigned(played: Batch, **settings: object) -> Credit:
    return METHODS.make("dapo", {"max_response_tokens": 10, **settings}).assign(played, np.random.default_rng(0))


def test_advantages_by_hand():
    """Returns 1 - 0.5, 0 - 1 and 0 - 1: mean -0.5, sample standard deviation sqrt(0.75)."""
    credit = assigned(PLAYED)
    std = 0.75**0.5 + 1e-6
    assert [each.tolist() for each in credit.advantages] == [
        pytest.approx([1 / std] * 2), pytest.approx([-0.5 / std] * 2), pytest.approx([-0.5 / std])
    ]  # fmt: skip
    assert credit.draw_weight.tolist() == pytest.approx([1 / std, 0.5 / std, 0.5 / std])
    assert credit.metrics["length_reward"] == pytest.approx((0 - 0.5 + 0 - 1 - 1) / 5)


def test_truncated_responses_may_be_masked():
    """Only the step that was cut off; its group's mean is the same, and the draw weight is the mean of what is left."""
    plain, masked = assigned(PLAYED), assigned(PLAYED, mask_truncated=True)
    assert masked.advantages[1].tolist() == [plain.advantages[1][0], 0.0]  # type: ignore[union-attr]
    assert masked.advantages[0].tolist() == plain.advantages[0].tolist()  # type: ignore[union-attr]
    assert masked.draw_weight[1] == pytest.approx(plain.draw_weight[1] / 2)


def test_short_responses_leave_the_group_normalised_return():
    short = batch(*(trajectory([value], tokens=[4]) for value in (0.0, 1.0, 1.0)))
    plain = METHODS.make("msgrpo").assign(short, np.random.default_rng(0))
    assert np.concatenate(assigned(short).advantages) == pytest.approx(np.concatenate(plain.advantages))


def test_the_reward_of_a_later_step_is_discounted_as_its_own_is():
    """Return 0.5 x 1 - 0.5 x 0.5 = 0.25 against 0 and 0, discounted by 0.5 in the second step."""
    played = batch(trajectory([0.0, 1.0], tokens=[3, 9]), *(trajectory([0.0], tokens=[1]) for _ in range(2)))
    credit = assigned(played, discount=0.5)
    std = np.std([0.25, 0.0, 0.0], ddof=1) + 1e-6
    assert credit.draw_weight[0] == pytest.approx((0.25 - 0.25 / 3) / std)
