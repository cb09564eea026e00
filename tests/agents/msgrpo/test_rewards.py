"""Reward rules: what training learns from, what the log and evaluations report beside the game, what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Floats
from agents.msgrpo.rewards import REWARDS, rewarded
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import ALONE, SHORT, same_weights

RNG = np.random.default_rng(0)


class SaysRed:
    """Pays for what is written, whatever the light is."""

    reward_mode: ClassVar[str] = "replace"

    def pay(self, batch: Batch) -> Sequence[Floats]:
        assert all("The light is " in text for each in batch.trajectories for text in each.observations)
        return [np.array(["red" in text for text in each.responses], dtype=np.float64) for each in batch.trajectories]


class Fixed:
    """Pays what it is told to, and keeps what it was shown."""

    def __init__(self, paid: Any) -> None:
        self.paid, self.metrics = paid, {"of_its_own": 7.0}

    reward_mode, seen = "add", list[float]()

    def pay(self, batch: Batch) -> Any:
        self.seen = [each.returned() for each in batch.trajectories]
        return self.paid


# the second one's first answer was invalid and cost 0.5
PLAYED = batch(trajectory([0.0, 1.0]), trajectory([-0.5, 1.0], valid=np.array([False, True])))


@pytest.mark.parametrize(
    ("mode", "expected"), [("auto", [[2.0, 1.0], [-0.5, 5.0]]), ("replace", [[2.0, 0.0], [-0.5, 4.0]])]
)
def test_payments_are_weighted_and_added_or_replace_the_games_and_format_penalties_stay(mode, expected):
    rule: Any = Fixed([np.array([1.0, 0.0]), np.array([0.0, 2.0])])
    config = MSGRPOConfig(reward="length", reward_mode=mode, reward_weight=2.0, format_penalty=0.5)
    found, told = rewarded(PLAYED, rule, config)
    assert [each.rewards.tolist() for each in found.trajectories] == expected
    assert rule.seen == [1.0, 1.0]
    assert told == {"reward": 1.5, "zero_advantage_groups": 0.0, "of_its_own": 7.0}
    assert PLAYED.returns().tolist() == [1.0, 0.5]


@pytest.mark.parametrize("paid", [[np.ones(2)], [np.ones(2), np.ones(3)], [np.ones(2), np.array([0.0, np.nan])]])
def test_a_payment_that_is_no_finite_number_for_each_step_is_refused(paid):
    rule: Any = Fixed(paid)
    with pytest.raises(ConfigError, match=r"reward = 'length': pay returned .* for each of the 2 trajectories"):
        rewarded(PLAYED, rule, MSGRPOConfig(reward="length"))


def test_the_length_rule_with_the_papers_credit_is_dapos_credit():
    played = batch(trajectory([0.0, 1.0], tokens=[3, 9]), *(trajectory([0.0], tokens=[n]) for n in (8, 12)))
    rule = REWARDS.make("length", {"max_response_tokens": 10})
    assert [each.tolist() for each in rule.pay(played)] == [[0.0, -0.5], [0.0], [-1.0]]
    wide = REWARDS.make("length", {"max_response_tokens": 100, "cache_share": 0.25})
    (paid,) = wide.pay(batch(trajectory([0.0] * 6, tokens=[1, 75, 76, 88, 100, 140])))
    assert paid.tolist() == pytest.approx([0, 0, -0.04, -0.52, -1, -1])
    found, told = rewarded(played, rule, MSGRPOConfig(reward="length"))
    own = METHODS.make("msgrpo").assign(found, RNG).advantages
    dapo = METHODS.make("dapo", {"max_response_tokens": 10}).assign(played, RNG).advantages
    assert np.concatenate(own) == pytest.approx(np.concatenate(dapo))
    assert told["reward"] == -0.5


def test_training_learns_from_the_rule_and_scores_keep_to_the_game(make_trainer):
    config = replace(
        SHORT, groups=4, group_size=16, iterations=12, max_response_tokens=1, minibatches=4, learning_rate=5e-3,
        eval_every=12, eval_episodes=20, format_penalty=0.5, **ALONE,
    )  # fmt: skip
    random: dict[str, Any] = {"model": {"initializer_range": 0.15}}
    plain = make_trainer(config, "TestButtons-v0", **random)
    other = make_trainer(replace(config, reward=f"{__name__}:SaysRed"), "TestButtons-v0", **random)
    first, same = plain.iterate(), other.iterate()
    assert "reward" not in first
    assert first["return"] == same["return"] != same["reward"]  # the same episodes
    assert not same_weights(plain, other)
    history = other.train()
    assert history[-1]["reward"] > 0.8 > history[0]["reward"] + 0.5
    (last,) = other.evaluations[-1][1]
    assert last.reward > 0.8
    assert last.score == last.mean_return < 0.7


def test_settings_that_can_not_be_used_together_are_refused(make_trainer):
    with pytest.raises(ConfigError, match="reward_weight = 2 with reward = 'game', which is no rule"):
        MSGRPOConfig(reward_weight=2.0)
    with pytest.raises(ConfigError, match="reward = 'length' with credit by fresh episodes, which the game alone pays"):
        make_trainer(replace(SHORT, reward="length", credit="vine")).iterate()
