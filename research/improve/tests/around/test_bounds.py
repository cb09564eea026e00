"""``ucb`` and ``advised(A, bounds)``: a player that reads confidence bounds explores well, and one can learn to."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.tiny import Recipe, pretrain, save
from agents.turn import Policy, Turn, TurnRequest
from research.improve.around.bounds import BoundsAdvisor, UCBPlayer
from research.improve.around.reading import AdvisedPolicy
from research.improve.methods import learning
from textgames.exploration import Bandit

SHOWN = "Round 7 of 25. Total reward so far: 4.\nred: pressed 4 times, total reward 3, average 0.75\n"
TWICE = "blue: pressed 2 times, total reward 1, average 0.50"


@pytest.mark.parametrize(
    ("blue", "settings", "arm", "told"),
    [
        # 3/4 + sqrt(.5 ln 6 / 4) = 1.223 against 1/2 + sqrt(.5 ln 6 / 2) = 1.169
        (TWICE, {}, "red", ["0.75 + 0.47 = 1.22", "0.50 + 0.67 = 1.17"]),
        (TWICE, {"prior": "gaussian", "scale": 2.0}, "blue", ["0.75 + 0.95 = 1.70", "0.50 + 1.34 = 1.84"]),
        ("blue: not pressed yet", {}, "blue", ["0.75 + 0.42 = 1.17", "not pressed yet, so try it first"]),
    ],
)
def test_bounds_by_hand(blue, settings, arm, told):
    asked = TurnRequest(SHOWN + blue, legal_actions=("red", "blue"), game=Bandit(num_arms=2, **settings))
    assert f"<action>{arm}</action>" in UCBPlayer().act([asked])[0].response
    _, red, other = BoundsAdvisor().act([asked])[0].response.splitlines()
    assert [red, other] == [f"red: {told[0]}", f"blue: {told[1]}"]


class Reader:
    """Chooses the first arm that its guide says to try, else the largest bound; without a guide, its first arm."""

    name = "reader"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(f"<action>{self.choice(each)}</action>") for each in requests]  # type: ignore[arg-type]

    def choice(self, request: TurnRequest) -> str:
        _, _, guide = request.observation.partition("Advice: ")
        if untried := re.search(r"^(\w+): .* try it first", guide, re.MULTILINE):
            return untried[1]
        bounds = re.findall(r"^(\w+): .* = (-?[\d.]+)$", guide, re.MULTILINE)
        return max(bounds, key=lambda one: float(one[1]))[0] if bounds else request.legal_actions[0]


def best_arm_share(policy: Policy) -> float:
    played = rollout(policy, [EpisodeTask.of("bandit", seed) for seed in range(80)])
    return float(np.mean([episode.metrics["player_0"]["best_arm_share"] for episode in played]))


def test_a_player_that_reads_the_bounds_finds_the_best_arm_and_useless_words_do_not_help_it():
    guided = best_arm_share(AdvisedPolicy(Reader(), load_agent("bounds")))
    alone = best_arm_share(Reader())
    assert guided == pytest.approx(best_arm_share(load_agent("ucb")), abs=0.02)  # two decimals of a bound are shown
    assert guided > alone + 0.15
    assert best_arm_share(AdvisedPolicy(Reader(), load_agent("random"))) <= alone


def test_a_game_without_arms_is_refused(textbench):
    done = textbench("run", "--agent", "ucb", "--scenario", "frozen-lake")
    assert "ucb computes confidence bounds, which FrozenLake has none of: play a bandit" in done.err
    assert done.code != 0


@pytest.mark.slow
def test_a_model_that_imitates_ucb_has_less_regret(textbench, monkeypatch):
    monkeypatch.setattr(learning, "COMPARED", 20)
    save(pretrain(Recipe.legal_play(["bandit-bayes"], steps=150, hidden_size=32, intermediate_size=64)), Path("base"))
    options = [f"{name}={value}" for name, value in {"examples": 1000, "rank": 0, "learning_rate": 3e-3}.items()]
    done = textbench(
        *(
            "improve",
            "imitate",
            "--agent",
            "hf:base",
            "--mode",
            "direct",
            "--scenario",
            "bandit-bayes",
            "--out",
            "made",
        ),
        *("--set", "teacher=ucb", "--set", "passes=3", "--eval-episodes", 30),
        *(word for each in options for word in ("--set", each)),
    )
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("made/evaluation/episodes.jsonl").read_text().splitlines()]
    regret = {
        name: np.mean([one["metrics"]["player_0"]["regret"] for one in lines if one["agents"]["player_0"] == name])
        for name in ("before", "after")
    }
    assert regret["after"] < 0.7 * regret["before"]
