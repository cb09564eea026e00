"""Preferences between the agent's own answers: they are ranked by exact values, and a model gains by them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.baselines.search import find_search_player
from agents.turn import TurnRequest
from benchmark.runs.folder import RunFolder
from benchmark.score.results import read_columns
from benchmark.show.training_data import Source, preferences
from research.improve.methods.preferring.preferences import pairs_of
from textgames.scenarios import SCENARIOS
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

GAME = SCENARIOS["frozen-lake"].game()
SOLVER = find_search_player(GAME)


def values_at(prompt):
    text = prompt[-1].content
    board = text[text.index("Board: ") :].partition("\n\n")[0]
    left = int(text.partition("this one included: ")[2].partition(".")[0])
    return SOLVER.values(TurnRequest(board, legal_actions=GAME.actions, steps_left=left, game=GAME))


@pytest.mark.slow
def test_the_better_of_two_own_answers_to_one_prompt_has_the_larger_exact_value(textbench):
    assert SOLVER.exact
    folders = []
    for sample in (1, 2, 3):
        folders.append(Path(f"sample-{sample}"))
        done = textbench(
            *("run", "--agent", "random", "--mode", "direct", "--scenario", "frozen-lake", "--episodes", 20),
            *("--seed-offset", 2000, "--resample", sample, "--out", folders[-1], "--quiet", "--json"),
        )
        assert done.code == 0
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
    others = preferences(Source(read_columns(folders)))
    assert not {line["chosen"][0]["content"] for line in others} <= said


def improve(textbench, *more):
    pytest.importorskip("trl")
    return textbench("improve", "preferences", "--agent", "tiny", "--scenario", "frozen-lake", "--out", "o", *more)


@pytest.mark.slow
def test_where_all_answers_are_worth_the_same_the_agent_stays_as_it_is(textbench):
    done = improve(textbench, "--set", "episodes=4", "--set", "attempts=1", "--eval-episodes", 0)
    assert done.code == 0, done.err
    assert "there is nothing to prefer" in done.err
    assert Path("o/agent.toml").read_text() == 'spec = "tiny"\n'


@pytest.mark.slow
def test_a_model_plays_better_by_its_preferences_and_tells_nothing_else(textbench):
    more = ("--set", "episodes=150", "--temperature", 1, "--eval-episodes", 60, "--json", "--quiet")
    done = improve(textbench, *more)
    assert done.code == 0, done.err
    json.loads(done.out)
    about = json.loads(Path("o/improvement.json").read_text())
    before, after = (about[when][0]["success_rate"]["value"] for when in ("before", "after"))
    assert after > before + 0.1


@pytest.mark.nightly
def test_killed_in_its_training_it_goes_on_and_ends_equal_to_the_last_bit(textbench):
    more = ("--set", "episodes=20", "--set", "attempts=4", "--set", "passes=70", "--eval-episodes", 0, "--quiet")
    assert improve(textbench, *more).code == 0
    Path("o").rename("whole")
    command = ("improve", "preferences", "--agent", "tiny", "--scenario", "frozen-lake", "--out", "o", *map(str, more))
    process = subprocess.Popen([sys.executable, "-m", "benchmark.cli", *command])
    while process.poll() is None and not list(Path("o").glob("dpo-model/checkpoint-*/trainer_state.json")):
        time.sleep(0.05)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert not Path("o/model").exists()
    assert improve(textbench, *more).code == 0
    weights = "model/adapter_model.safetensors"
    assert Path("o", weights).read_bytes() == Path("whole", weights).read_bytes()
    assert not Path("o/dpo-model").exists()


def test_as_many_pairs_are_computed_at_a_time_as_their_logits_fit():
    """Of 16 pairs of SmolLM2's prompts TRL held 10 GB."""
    from research.improve.methods.preferring.preferences import _at_once

    rows = {"prompt_ids": [[1] * 246, [1] * 9], "chosen_ids": [[1] * 4] * 2, "rejected_ids": [[1] * 5] * 2}
    assert [_at_once(rows, words) for words in (200, 12_000, 49_152, 2_000_000)] == [16, 8, 2, 1]


@pytest.mark.slow
def test_a_step_of_parts_is_that_of_the_whole_batch(tmp_path, monkeypatch):
    """With DPO alone: its loss is a mean over pairs, and that of the likelihood one over the tokens of a part."""
    pytest.importorskip("trl")
    from safetensors.torch import load_file

    from agents.msgrpo.configuration.config import MSGRPOConfig
    from agents.turn import Message
    from research.improve.methods.preferring import preferences as method

    words = ("up", "down", "left", "right")
    pairs = [
        method.Pair(
            (Message("user", f"You are at {k}."),),
            f"<action>{words[k % 4]}</action>",
            f"<action>{words[k // 4]}</action>",
        )
        for k in range(16)
    ]

    def weights(logits: int, sft: float) -> dict:
        out = tmp_path / f"{logits}-{sft}"
        monkeypatch.setattr(method, "LOGITS", logits)
        config = MSGRPOConfig(model="tiny", response_mode="direct", out=str(out), lora_rank=0, learning_rate=1e-4)
        method.prefer(config, pairs, beta=0.1, sft=sft)
        return load_file(out / "model.safetensors")

    whole, parts, other = weights(2**26, 0.0), weights(1, 0.0), weights(2**26, 1.0)
    moved = max(float((other[name] - whole[name]).abs().max()) for name in whole)
    apart = max(float((parts[name] - whole[name]).abs().max()) for name in whole)
    assert apart < 0.05 * moved
