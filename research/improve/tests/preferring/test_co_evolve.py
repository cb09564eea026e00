"""A policy and a judge learn from each other: pairs by hand, what a judge that knows adds, and the whole command."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents import Message, search_player_of
from benchmark.runs import find_scenarios
from research.improve.methods.preferring.co_evolve import advantages_of
from research.improve.methods.preferring.critiques import (
    Critique,
    Weighted,
    agreement,
    drawn,
    judge_pairs,
    policy_pairs,
)
from research.improve.methods.preferring.preferences import Pair

pytest.importorskip("torch")
from research.improve.values.measure import SCENARIO, random_play

SOLVER = search_player_of(find_scenarios([SCENARIO])[SCENARIO].game())
PROMPT = (Message("user", "step"),)
GOOD, BAD = (Critique(PROMPT, word, word == "good") for word in ("good", "bad"))


@pytest.fixture(scope="module")
def play():
    """Four attempts on each seed."""
    return [one for attempt in range(4) for one in random_play(SCENARIO, 60, attempt)]


def lost(decision) -> float:
    values = SOLVER.values(decision.request)
    return max(values.values()) - values[decision.action]


def right(play, good, weight: float) -> float:
    """Return the share of the policy's pairs that prefer the action of the larger exact value, of those that differ."""
    losses = {(one.prompt, one.response): lost(one) for each in play for one in each.decisions}
    critiques = [[[GOOD if good(one) else BAD] for one in each.decisions] for each in play]
    pairs = [one.pair for one in policy_pairs(play, advantages_of(play), critiques, weight)]
    gains = [losses[one.prompt, one.rejected] - losses[one.prompt, one.chosen] for one in pairs]
    return float(np.mean([gain > 0 for gain in gains if gain]))


def test_a_judge_that_knows_makes_better_pairs_than_outcomes_and_a_useless_one_does_not(play):
    rng = np.random.default_rng(0)
    outcomes = right(play, lambda one: True, 0.0)
    assert right(play, lambda one: lost(one) < 0.01, 5.0) > max(0.95, outcomes)
    assert right(play, lambda one: rng.random() < 0.5, 5.0) < 0.7


def test_pairs_by_hand(play):
    first, second = (
        one._replace(seed=0, decisions=one.decisions[:1], result=result)
        for one, result in zip(random_play(SCENARIO, 1, 0) * 2, (1.0, 0.0), strict=True)
    )
    second = second._replace(decisions=[second.decisions[0]._replace(response="other")])
    assert advantages_of([first, second]) == [1.0, -1.0]
    critiques = [[[GOOD, BAD]], [[GOOD, GOOD]]]  # the scores are 1 + 0 and -1 + 0.5
    (pair,) = policy_pairs([first, second], [1.0, -1.0], critiques, 0.5)
    assert (pair.pair.chosen, pair.pair.rejected, pair.weight) == (first.decisions[0].response, "other", 1.5)
    assert judge_pairs([0.5, -1.0], critiques) == [Weighted(Pair(PROMPT, "good", "bad"), 0.5)]
    assert judge_pairs([-0.5, -1.0], critiques) == [Weighted(Pair(PROMPT, "bad", "good"), 0.5)]
    assert agreement([0.5, -1.0], critiques) == 0.25
    heavy = drawn(
        [Weighted(Pair(PROMPT, "a", "b"), 0.0), Weighted(Pair(PROMPT, "c", "d"), 2.0)], np.random.default_rng(0)
    )
    assert {one.chosen for one in heavy} == {"c"}


@pytest.mark.slow
def test_the_command_trains_both(textbench):
    pytest.importorskip("trl")
    more = ("--set", "episodes=12", "--set", "attempts=3", "--set", "rounds=1", "--set", "passes=1", "--quiet")
    play = ("--agent", "tiny", "--scenario", "frozen-lake", "--temperature", 1, "--eval-episodes", 0, "--out", "o")
    done = textbench("improve", "co-evolve", *play, *more)
    assert done.code == 0, done.err
    assert json.loads(Path("o/improvement.json").read_text())["spent"]["calls"] > 0
    for name in ("model-1", "judge-1"):
        assert Path("o", name, "adapter_model.safetensors").exists()
