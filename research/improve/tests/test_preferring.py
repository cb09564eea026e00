"""Preferences between the agent's own answers, by exact values, a learned value or a judge that learns along."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from agents import Message, search_player_of
from agents.baselines.search import find_search_player
from agents.msgrpo import MSGRPOConfig
from agents.turn import TurnRequest
from benchmark.runs import find_scenarios
from benchmark.runs.folder import RunFolder
from benchmark.score.results import read_columns
from benchmark.show.training_data import Source
from benchmark.show.training_data import preferences as preferences_in
from research.improve.methods import preferences
from research.improve.methods.co_evolve import (
    Critique,
    Weighted,
    advantages_of,
    agreement,
    drawn,
    judge_pairs,
    policy_pairs,
)
from research.improve.methods.learning import value_in
from research.improve.methods.preferences import Pair, pairs_of
from research.improve.tests.conftest import USELESS
from research.improve.values.measure import SCENARIO, random_play
from textgames.scenarios import SCENARIOS
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

GAME = SCENARIOS["frozen-lake"].game()
LAKE_SOLVER = find_search_player(GAME)


def sampled(textbench, scenario: str, episodes: int) -> list[Path]:
    """Return the folders of three attempts of a random player on the same seeds."""
    folders = [Path(f"sample-{sample}") for sample in (1, 2, 3)]
    for sample, folder in enumerate(folders, 1):
        play = ("run", "--agent", "random", "--mode", "direct", "--scenario", scenario, "--episodes", episodes)
        done = textbench(*play, "--seed-offset", 2000, "--resample", sample, "--out", folder, "--quiet", "--json")
        assert done.code == 0
    return folders


def values_at(prompt):
    text = prompt[-1].content
    board = text[text.index("Board: ") :].partition("\n\n")[0]
    left = int(text.partition("this one included: ")[2].partition(".")[0])
    return LAKE_SOLVER.values(TurnRequest(board, legal_actions=GAME.actions, steps_left=left, game=GAME))


@pytest.mark.slow
def test_the_better_of_two_own_answers_to_one_prompt_has_the_larger_exact_value(textbench):
    assert LAKE_SOLVER.exact
    folders = sampled(textbench, "frozen-lake", 20)
    pairs = pairs_of(folders)
    assert len(pairs) > 5
    for pair in pairs:
        values = values_at(pair.prompt)
        better, worse = (
            values[said.rpartition(OPEN_TAG)[2].removesuffix(CLOSE_TAG)] for said in (pair.chosen, pair.rejected)
        )
        assert better > worse
    said = {step.turn.response for folder in folders for one in RunFolder.open(folder).records() for step in one.steps}
    assert {pair.chosen for pair in pairs} <= said  # none of the planner's, which preferences have otherwise
    others = preferences_in(Source(read_columns(folders)))
    assert not {line["chosen"][0]["content"] for line in others} <= said


@pytest.mark.slow
def test_preferences_by_a_learned_value_are_mostly_right_and_by_a_useless_one_as_often_wrong(values, textbench):
    folders = sampled(textbench, SCENARIO, 40)
    exact = {*pairs_of(folders)}

    def right(value: str) -> float:
        pairs = pairs_of(folders, value_in(str(values / value)))
        known = [one in exact for one in pairs if {one, one._replace(chosen=one.rejected, rejected=one.chosen)} & exact]
        assert len(known) > 15
        return float(np.mean(known))

    assert right("learned") > 0.75
    assert np.mean([*map(right, USELESS)]) < 0.65


@pytest.mark.slow
def test_where_all_answers_are_worth_the_same_the_agent_stays_as_it_is(improve):
    done = improve("preferences", "tiny", episodes=4, attempts=1)
    assert "there is nothing to prefer" in done.err
    assert done.agent == {"spec": "tiny"}


@pytest.mark.slow
def test_a_model_plays_better_by_its_preferences_and_tells_nothing_else(improve):
    done = improve("preferences", "tiny", "--temperature", 1, "--json", "--quiet", scored=60, episodes=150)
    json.loads(done.out)
    before, after = done.scores()
    assert after > before + 0.1


@pytest.mark.nightly
def test_killed_in_its_training_it_resumes_and_ends_equal_to_the_last_bit(improve):
    more = ("--set", "episodes=20", "--set", "attempts=4", "--set", "passes=70", "--quiet")
    improve("preferences", "tiny", *more)
    Path("o").rename("whole")
    command = ("improve", "preferences", "--agent", "tiny", "--scenario", "frozen-lake", "--eval-episodes", "0")
    process = subprocess.Popen([sys.executable, "-m", "benchmark.cli", *command, "--out", "o", *more])
    while process.poll() is None and not list(Path("o").glob("dpo-model/checkpoint-*/trainer_state.json")):
        time.sleep(0.05)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert not Path("o/model").exists()
    improve("preferences", "tiny", *more)
    weights = "model/adapter_model.safetensors"
    assert Path("o", weights).read_bytes() == Path("whole", weights).read_bytes()
    assert not Path("o/dpo-model").exists()


def test_as_many_pairs_are_computed_at_a_time_as_their_logits_fit():
    """Of 16 pairs of SmolLM2's prompts TRL held 10 GB."""
    rows = {"prompt_ids": [[1] * 246, [1] * 9], "chosen_ids": [[1] * 4] * 2, "rejected_ids": [[1] * 5] * 2}
    assert [preferences._at_once(rows, words) for words in (200, 12_000, 49_152, 2_000_000)] == [16, 8, 2, 1]


@pytest.mark.slow
def test_a_step_of_parts_is_that_of_the_whole_batch(tmp_path, monkeypatch):
    """With DPO alone: its loss is a mean over pairs, and that of the likelihood one over the tokens of a part."""
    pytest.importorskip("trl")
    from safetensors.torch import load_file

    said = [f"<action>{word}</action>" for word in ("up", "down", "left", "right")]
    pairs = [Pair((Message("user", f"You are at {k}."),), said[k % 4], said[k // 4]) for k in range(16)]

    def weights(logits: int, sft: float) -> dict:
        out = tmp_path / f"{logits}-{sft}"
        monkeypatch.setattr(preferences, "LOGITS", logits)
        config = MSGRPOConfig(model="tiny", response_mode="direct", out=str(out), lora_rank=0, learning_rate=1e-4)
        preferences.prefer(config, pairs, beta=0.1, sft=sft)
        return load_file(out / "model.safetensors")

    whole, parts, other = weights(2**26, 0.0), weights(1, 0.0), weights(2**26, 1.0)
    moved, apart = (max(float((one[name] - whole[name]).abs().max()) for name in whole) for one in (other, parts))
    assert apart < 0.05 * moved


SOLVER = search_player_of(find_scenarios([SCENARIO])[SCENARIO].game())
PROMPT = (Message("user", "step"),)
GOOD, BAD = (Critique(PROMPT, word, word == "good") for word in ("good", "bad"))


def lost(decision) -> float:
    values = SOLVER.values(decision.request)
    return max(values.values()) - values[decision.action]


def test_a_judge_that_knows_makes_better_pairs_than_outcomes_and_a_useless_one_does_not():
    play, rng = [one for attempt in range(4) for one in random_play(SCENARIO, 60, attempt)], np.random.default_rng(0)
    losses = {(one.prompt, one.response): lost(one) for each in play for one in each.decisions}

    def right(good, weight: float) -> float:
        """Return the share of the policy's pairs that prefer the action of the larger exact value, if they differ."""
        critiques = [[[GOOD if good(one) else BAD] for one in each.decisions] for each in play]
        pairs = [one.pair for one in policy_pairs(play, advantages_of(play), critiques, weight)]
        gains = [losses[one.prompt, one.rejected] - losses[one.prompt, one.chosen] for one in pairs]
        return float(np.mean([gain > 0 for gain in gains if gain]))

    outcomes = right(lambda one: True, 0.0)
    assert right(lambda one: lost(one) < 0.01, 5.0) > max(0.95, outcomes)
    assert right(lambda one: rng.random() < 0.5, 5.0) < 0.7


def test_pairs_by_hand():
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
    light, heavy = (Weighted(Pair(PROMPT, *said), weight) for said, weight in ((("a", "b"), 0.0), (("c", "d"), 2.0)))
    assert drawn([light, heavy], np.random.default_rng(0)) == [heavy.pair] * 2


@pytest.mark.slow
def test_the_command_trains_both(improve):
    done = improve("co-evolve", "tiny", "--temperature", 1, episodes=12, attempts=3, rounds=1, passes=1)
    assert done.about["spent"]["calls"] > 0
    for name in ("model-1", "judge-1"):
        assert Path("o", name, "adapter_model.safetensors").exists()
