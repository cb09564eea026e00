"""OTC's factors by hand."""

import numpy as np
import pytest

from agents.msgrpo.rewards import REWARDS
from tests.agents.msgrpo.hand_made import batch, trajectory


def test_a_gain_is_worth_less_with_more_calls_than_the_shortest_best_episode_and_a_loss_stays():
    played = batch(
        trajectory([0.0, 1.0]), trajectory([0.0, -0.5, 0.0, 1.5]), trajectory([-1.0]),
        trajectory([0.0, 0.0, 1.0], group=1),
    )  # fmt: skip
    paid = [each.tolist() for each in REWARDS.make("otc").pay(played)]
    assert paid == [[0.0, 1.0], pytest.approx([0.0, -0.5, 0.0, 1.5 * np.sin(np.pi * 4 / 6)]), [-1.0], [0.0, 0.0, 1.0]]
    ppo = REWARDS.make("otc", {"constant": 2.0, "calls": "tokens"})
    assert ppo.evaluates
    assert ppo.pay(played)[0].tolist() == pytest.approx([0.0, np.cos(4 * np.pi / 10)])
