"""Coverage: marginal gains by hand, diminishing returns and the greedy bound by enumeration, and a training by it."""

from itertools import combinations
from math import e
from typing import Any

import numpy as np
import pytest

from agents import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.rewards import REWARDS
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.tiny_models import word_tokenizer
from textgames import game_of
from textgames.frozen_lake.rules import FrozenLakeState


def covers(desc: list[str], reach: int) -> list[frozenset[int]]:
    """The cells that each tile of a lake covers but for its goal, which is the last."""
    start = game_of("TextFrozenLake-v0", desc=desc).initial_state(np.random.default_rng(0))
    each = trajectory([0.0], task=EpisodeTask.of("TextFrozenLake-v0", 0, max_steps=9, desc=desc))
    rule: Any = REWARDS.make("coverage", {"part": "position", "reach": reach})
    return [rule.cover(each, FrozenLakeState(start.lake, cell)) for cell in range(len(start.lake.tiles) - 1)]


def size(found: Any) -> int:
    return len(frozenset().union(*found))


def test_steps_are_paid_the_cells_that_they_are_the_first_to_cover():
    """The start isn't paid, and nor is what was visited before; another episode begins anew."""
    rule = REWARDS.make("coverage")
    played = batch(trajectory([0.0] * 4, "abac", end_state="d"), trajectory([1.0], "b", end_state="b"))
    assert [each.tolist() for each in rule.pay(played)] == [[1.0, 0.0, 1.0, 1.0], [0.0]]
    assert rule.metrics == {"covered": 2.5}
    assert covers(["SF", "FG"], 1) == [{0, 1, 2}, {0, 1, 3}, {0, 2, 3}]


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_returns_diminish(reach):
    """F(A + x) - F(A) >= F(B + x) - F(B) for all A within B; a reach over the whole lake leaves nothing to gain."""
    own = covers(["SFF", "FFG"], reach)
    sets = [frozenset(some) for n in range(len(own) + 1) for some in combinations(range(len(own)), n)]
    gains = [[size(own[k] for k in some | {x}) - size(own[k] for k in some) for x in range(len(own))] for some in sets]
    for small, less in zip(sets, gains, strict=True):
        assert all(min(np.subtract(less, more)) >= 0 for large, more in zip(sets, gains, strict=True) if small <= large)
    assert max(gains[-1]) == 0
    assert size(covers(["SF", "FG"], 2)[:1]) == 4


def test_the_greedy_choice_is_within_its_bound_of_the_best_and_not_always_the_best():
    """The best cover by enumeration of all choices: a greedy one has at least 1 - 1/e of it."""
    shares = []
    for desc in (["SFFFFG"], ["SFF", "FFF", "FFG"], ["SFFF", "FFFF", "FFFG"], ["SHFF", "FFHF", "FFFG"]):
        own = covers(desc, 1)
        for count in (1, 2, 3, 4):
            chosen: list[frozenset[int]] = []
            for _ in range(count):
                chosen.append(max(own, key=lambda each, so_far=chosen: size([*so_far, each])))
            shares.append(size(chosen) / max(map(size, combinations(own, count))))
    assert 1 - 1 / e <= min(shares) < max(shares) == 1


def test_a_game_without_the_part_or_the_chances_is_refused():
    with pytest.raises(
        ConfigError, match="part = 'cell' is no part of a state of frozen-lake; accepted: lake, positio"
    ):
        REWARDS.make("coverage", {"part": "cell"}).check(EpisodeTask.of("frozen-lake", 0))
    with pytest.raises(ConfigError, match="reach = 1 takes a game of one player whose rules list"):
        REWARDS.make("coverage", {"reach": 1}).check(EpisodeTask.of("prisoners-dilemma", 0))


@pytest.mark.parametrize(("game", "paid"), [("frozen-lake", True), ("TestCorridor-v0", False)])
def test_an_evaluation_on_a_game_that_has_no_such_part_is_not_paid(make_trainer, game, paid):
    config = MSGRPOConfig(
        reward="coverage", method_settings={"reward": {"coverage": {"part": "position"}}}, eval_scenarios=(game,),
        eval_episodes=2, response_mode="direct", max_response_tokens=1, samples_every=0,
    )  # fmt: skip
    (result,) = make_trainer(config, "frozen-lake").evaluate()
    assert (result.reward is not None) == paid


@pytest.mark.slow
def test_a_model_trained_by_coverage_visits_more_than_one_trained_by_the_game(prompt_file, make_llama):
    """The goal lies below the start: by the game an episode ends there, and by coverage it goes elsewhere first."""
    lake, seen = {"desc": ["SFF", "GFF", "FFF"], "grid": False}, {}
    for name, settings in {"coverage": {}, "game": {"reward_mode": "add", "reward_weight": 0.0}}.items():
        spots = [f"Player: ({x}, {y})" for x in range(3) for y in range(3)]
        tokenizer = word_tokenizer(("left", "down", "right", "up", *spots), gaps=True)
        config = MSGRPOConfig.preset(
            "subpo", groups=2, group_size=16, iterations=9, response_mode="direct", max_response_tokens=1, max_steps=8,
            temperature=1.0, format_penalty=0.5, learning_rate=5e-3, minibatches=1, eval_every=0, samples_every=0,
            min_valid_share=0, stop_after=0, preflight_episodes=0, prompt_file=prompt_file,
            game=lake, **settings,
        )  # fmt: skip
        model = make_llama(len(tokenizer), initializer_range=0.15)
        history = MSGRPOTrainer(model, tokenizer, "frozen-lake", config, quiet=True).train()
        seen[name] = [np.mean([one["covered"] for one in part]) for part in (history[:1], history[-3:])]
    assert seen["coverage"][0] == seen["game"][0] < 2.5
    assert seen["coverage"][1] > 3 > 2.4 > seen["game"][1]
