"""Rewards of neighbouring papers by hand: shares of a group's answers, spared calls, welfare of both players."""

from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.rewards import REWARDS
from agents.turn import Turn
from research.methods.rewards import stated
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.played import iteration_of


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


class Stating:
    """Plays one action in each seat and states payoffs, of which one of four is wrong."""

    name, history_turns = "stating", None
    payoffs = "cooperate, cooperate: 3, 3; cooperate, defect: 0, 5; defect, cooperate: 5, 0; defect, defect: 2, 1"

    def act(self, requests: Any) -> list[Turn]:
        chosen = {"player_0": "cooperate", "player_1": "defect"}
        told = f"<payoffs>{self.payoffs}</payoffs>"
        return [Turn(f"{told if r.player == 'player_0' else ''}<action>{chosen[r.player]}</action>") for r in requests]


def test_both_players_welfare_and_the_payoffs_that_an_answer_states_rightly():
    """A dilemma's rounds pay 0 and 5: the geometric mean is 0 to both, whom the game pays 0 and 50."""
    iteration = iteration_of("prisoners-dilemma", Stating())
    played = batch(*iteration.play([EpisodeTask.of("prisoners-dilemma", 3)]))
    rule = REWARDS.make("gtalign", {"matrix_weight": 2.0})
    paid = {each.player: own.tolist() for each, own in zip(played.trajectories, rule.pay(played), strict=True)}
    assert paid == {"player_0": [1.5] * 10, "player_1": [0.0] * 10}
    assert rule.metrics == {"payoffs_right": 0.375}
    assert stated(played.trajectories[0], 0)["defect", "defect"] == (2.0, 1.0)
    rule.check(EpisodeTask.of("prisoners-dilemma", 0))
    with pytest.raises(ConfigError, match="reward = 'gtalign' takes a game of two players that act at once"):
        rule.check(EpisodeTask.of("kuhn-poker", 0))


@pytest.mark.parametrize("name", ["empo", "otc", "gtalign"])
def test_a_preset_has_each(name):
    assert type(Methods.of(MSGRPOConfig.preset(name)).reward).__name__.lower() == name
