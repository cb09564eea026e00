"""OTC's factors by hand."""

import numpy as np
import pytest

from agents.msgrpo import ConfigError
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


def test_calls_of_a_second_player_are_those_that_were_bought():
    """In the first group the best took 1 and 3 calls, in the second none and 2: sin(3 pi / 4), and cos(2 pi / 5)."""
    played = batch(
        trajectory([0.0, 1.0], bought=(0, 1)), trajectory([0.0, 0.0, 1.0], bought=(1, 1, 1)),
        trajectory([0.0], bought=(0,)),
        trajectory([1.0], bought=(0,), group=1), trajectory([0.0, 1.0], bought=(1, 1), group=1),
    )  # fmt: skip
    rule = REWARDS.make("otc", {"calls": "calls"})
    factors = [each[-1] for each in rule.pay(played)]
    assert factors == pytest.approx([1.0, np.sin(np.pi * 3 / 4), 0.0, 1.0, np.cos(np.pi * 2 / 5)])
    assert rule.metrics["calls"] == pytest.approx(6 / 5)
    for bought in ((), (None, None)):
        with pytest.raises(ConfigError, match="there is none beside the learner; accepted: around = 'router"):
            rule.pay(batch(trajectory([0.0, 1.0], bought=bought)))
