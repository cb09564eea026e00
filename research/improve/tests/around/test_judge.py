"""``search(AGENT, JUDGE)``: the odds of success that a judge states, and the votes; and what a judge is asked."""

import re
from math import log

import numpy as np
import pytest

from agents import EpisodeTask, SearchPlayers, Turn, TurnRequest, load_agent, rollout
from research.improve.around.choosing import SearchPolicy
from research.improve.around.ranks import improved, probability_in

LAKE = "frozen-lake-level-1"
SEARCHERS = SearchPlayers()


class Judge:
    """States the exact probability of success after the action that it is asked about, in per cent."""

    name = "judge"

    def act(self, requests):
        return [Turn(f"<action>{self.percent(request)}</action>") for request in requests]

    def percent(self, request: TurnRequest) -> float:
        board, _, asked = request.observation.partition("\n\n")
        after = TurnRequest(board, legal_actions=request.game.actions, steps_left=request.steps_left, game=request.game)
        values = SEARCHERS.of(after).values(after)
        return round(100 * values[re.search(r"action is: (\w+)", asked)[1]], 2)


class Guessing(Judge):
    name = "guessing"

    def percent(self, request: TurnRequest) -> float:
        return int(np.random.default_rng(len(request.observation)).integers(0, 101))


def success(judge=None) -> float:
    policy = SearchPolicy(load_agent("random"), judge, rank_by="judge" if judge else "votes")
    episodes = rollout(policy, [EpisodeTask.of(LAKE, seed) for seed in range(60)])
    return float(np.mean([one.returns["player_0"] for one in episodes]))


def test_a_judge_that_knows_gains_and_one_that_does_not_gains_nothing():
    votes = success()
    assert success(Judge()) >= votes + 0.4
    assert success(Guessing()) <= votes + 0.1


def test_values_are_log_votes_plus_log_odds():
    told = [Turn("<action>75</action>"), Turn("I take it for 20 percent."), Turn("likely")]
    values = improved(["a", "b", "a", "c"], ["a", "b", "c"], told)
    assert values == pytest.approx({"a": log(0.5) + log(3), "b": log(0.25) - log(4), "c": log(0.25)})
    assert [probability_in(Turn(said)) for said in ("100", "0%", "150", "-3", "")] == pytest.approx(
        [0.999, 0.001, 0.5, 0.5, 0.5]
    )


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("search(random)", {"rank_by": "judge"}, r"'judge' asks a second player: search\(AGENT, JUDGE\)"),
        ("search(random, random)", {"rank_by": "value"}, "asks no second player: .* rank_by=judge"),
        ("search(random, tiny)", {"rank_by": "judge", "prompts": "brief-coordinates"}, "wouldn't see what is written"),
    ],
)
def test_a_judge_and_its_rule_go_together(spec, options, message):
    with pytest.raises(ValueError, match=message):
        load_agent(spec, **options)
