"""Nash-MD on learnt preferences: near uniform where they go in a circle and a reward model goes to a corner."""

import json

import numpy as np
import pytest

from agents.analysis.exploitability import requests_of
from agents.tiny import Recipe, pretrain, save
from benchmark.errors import UsageError
from research.improve.methods.preferring.nash import improve
from research.improve.methods.preferring.preference_model import best_by_reward, nash_md, sampled_wins
from research.improve.tests.preferring.test_nash import task_of
from textgames import game_of
from textgames.solving import expand

SCENARIO = "research.worlds:RockPaperScissors-v0"
CIRCLE = np.array([[0.5, 0, 1], [1, 0.5, 0], [0, 1, 0.5]])  # rock, paper, scissors
OFTEN_ROCK = np.array([0.6, 0.2, 0.2])


def test_a_circle_leads_to_uniform_play_a_reward_to_a_corner_and_coins_nowhere():
    how = {"steps": 3000, "rate": 4.0, "pull": 0.05}
    assert nash_md(CIRCLE, OFTEN_ROCK, **how) == pytest.approx([1 / 3] * 3, abs=0.05)
    assert nash_md(CIRCLE, OFTEN_ROCK, **how, follow=0.02) == pytest.approx([1 / 3] * 3, abs=1e-3)
    counts = 4000 * np.outer(OFTEN_ROCK, OFTEN_ROCK) * CIRCLE
    assert best_by_reward(counts, OFTEN_ROCK, pull=0.05) == pytest.approx([0, 1, 0], abs=1e-3)
    coins = np.full((3, 3), 0.5)
    assert nash_md(coins, OFTEN_ROCK, **how) == pytest.approx(OFTEN_ROCK)
    assert best_by_reward(coins, OFTEN_ROCK, pull=0.05) == pytest.approx(OFTEN_ROCK)


def test_a_step_and_a_reward_are_their_formulas():
    beaten = CIRCLE @ OFTEN_ROCK  # 0.5, 0.7 and 0.3, where the policy is the reference
    shares = OFTEN_ROCK * np.exp(2 * beaten)
    assert beaten == pytest.approx([0.5, 0.7, 0.3])
    assert nash_md(CIRCLE, OFTEN_ROCK, steps=1, rate=2.0, pull=0.1) == pytest.approx(shares / shares.sum())
    mixed = (shares / shares.sum()) ** 0.9 * OFTEN_ROCK**0.1  # the second step has half the rate
    mixed /= mixed.sum()
    shares = mixed * np.exp(CIRCLE @ mixed)
    assert nash_md(CIRCLE, OFTEN_ROCK, steps=2, rate=2.0, pull=0.1) == pytest.approx(shares / shares.sum())
    # 7 wins of 10 and a draw: the odds are 7.5 to 3.5, and their power of 1 / pull is what is played
    odds = (7.5 / 3.5) ** 2
    found = best_by_reward(np.array([[0.0, 7.0], [3.0, 0.0]]), np.array([0.5, 0.5]), pull=0.5)
    assert found == pytest.approx([odds / (1 + odds), 1 / (1 + odds)])


def test_pairs_are_drawn_by_the_model_and_won_by_the_rules():
    game = game_of(SCENARIO)
    chances = [dict(zip(game.actions, OFTEN_ROCK.tolist(), strict=True))] * 2
    for wins in sampled_wins(game, requests_of(expand(game, 1), game, 1), chances, 1000, seed=0):
        met = wins + wins.T
        assert wins == pytest.approx(met * CIRCLE)
        assert met[0, 1] == pytest.approx(2 * 1000 * 0.6 * 0.2, rel=0.15)


@pytest.mark.parametrize(
    ("scenario", "options", "said"),
    [
        (SCENARIO, {"preferences": "liked"}, "one of table, learned, reward, .* got preferences = 'liked'"),
        (SCENARIO, {"preferences": "learned", "pull": 0.5}, r"rate . pull <= 1, got .*, rate = 4 and pull = 0.5"),
        ("kuhn-poker", {"preferences": "learned"}, "isn't so in KuhnPoker: --set preferences=table"),
    ],
)
def test_what_can_not_be_learnt_is_refused(tmp_path, scenario, options, said):
    with pytest.raises(UsageError, match=said):
        improve(task_of(tmp_path, {"spec": "tiny", "mode": "direct"}, scenario), **options)


@pytest.mark.slow
def test_a_model_learns_preferences_in_a_circle_and_comes_to_play_uniformly(workplace, textbench):
    recipe = Recipe.legal_play([SCENARIO], steps=60, examples=2000, hidden_size=32, intermediate_size=64)
    save(pretrain(recipe), workplace / "base")
    told = {}
    for kind in ("learned", "reward"):
        options = (f"preferences={kind}", "rank=0", "learning_rate=0.003", "passes=100")
        done = textbench(
            *("improve", "nash", "--agent", "hf:base", "--mode", "direct", "--scenario", SCENARIO, "--out", kind),
            *("--eval-episodes", 0, *[word for option in options for word in ("--set", option)]),
        )
        assert done.code == 0, done.err
        values = [float(line.split()[1]) for line in done.err.splitlines() if line.startswith("exploitability")]
        told[kind] = *values, json.loads((workplace / kind / "improvement.json").read_text())["changed"]
    before, table, after, changed = told["learned"]
    assert before > 0.3  # it likes one of the three
    assert max(table, after) < 0.1
    assert changed
    assert told["reward"][1] > 0.9  # a corner, which another one beats, so the agent stays as it was
    assert not told["reward"][-1]
