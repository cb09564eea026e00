"""``textbench warmup``: one command from a base to a model that is evaluated beside it."""

import json
import re
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.msgrpo.warmup.start import ABOUT
from benchmark.cli import main

SMALL = ("--model", "tiny", "--examples", "32", "--rank", "2", "--eval-episodes", "2", "--mode", "think")


def warmup(*more, scenario="frozen-lake"):
    return main(["warmup", "--scenario", scenario, *SMALL, "--set", "device=cpu", "--set", "dtype=float32", *more])


@pytest.mark.slow
def test_it_learns_and_evaluates_before_and_after_and_a_second_call_plays_nothing_anew(workplace, capsys):
    assert warmup("--json", "--teacher", "random", "planner", "--explore", "0.2") == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    number = r"-?\d\.\d\d \[-?\d\.\d\d, -?\d\.\d\d\]"
    said = " ".join(told.err.split())
    assert re.search(f"frozen-lake, 2 episodes each: score {number} before, {number} after; success", said)
    scores = {score["agent"]: score for score in document["scores"]}
    assert set(scores) == {"base", "warm"}
    assert {score["episodes"] for score in scores.values()} == {2}
    about = json.loads((workplace / "runs/warmup-frozen-lake" / ABOUT).read_text())
    assert about["warmup"]["teachers"] == ["random", "planner"]
    assert about["warmup"]["explore"] == 0.2
    assert about["held_out"] < about["held_out_before"]
    kept = {"base": about["evaluation"]["before"], "warm": about["evaluation"]["after"]}
    for agent, (row,) in kept.items():
        assert row.items() <= scores[agent].items()
        assert (row["scenario"], row["episodes"]) == ("frozen-lake", 2)
        assert row["normalized"].keys() == row["success_rate"].keys() == {"value", "low", "high"}
    assert warmup("--json", "--teacher", "random", "planner", "--explore", "0.2") == 0
    assert json.loads(capsys.readouterr().out)["scores"] == document["scores"]
    assert json.loads((workplace / "runs/warmup-frozen-lake" / ABOUT).read_text()) == about


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--teacher", "planer"), "did you mean 'planner'"),
        (("--examples", "none"), "--examples must be a whole number of at least 1, got 'none'"),
        (("--explore", "1.5"), "--explore must be a number from 0 to 1, got '1.5'"),
        (("--mode", "aloud"), "response_mode must be one of think, direct, got 'aloud'"),
        (("--set", "learning_rat=1"), "learning_rat is not a setting"),
        (("--model", "./nowhere"), "no folder './nowhere'"),
        (("--rank", "4", "--full"), "--rank and --full exclude each other"),
    ],
)
def test_what_can_not_be_used_is_one_sentence(workplace, capsys, more, said):
    assert warmup(*more) == 2
    assert said in capsys.readouterr().err
    assert not list(workplace.glob("runs/*/*.safetensors"))


@pytest.mark.parametrize(
    ("model", "missing", "extra"),
    [("smollm2", "torch", "smollm2"), ("smollm2", "peft", "smollm2"), ("smollm2", "gguf", "smollm2"),
     ("tiny", "peft", "train"), ("hf:org/model", "transformers", "train")],
)  # fmt: skip
def test_what_is_missing_is_said_before_anything_is_played(workplace, capsys, monkeypatch, model, missing, extra):
    monkeypatch.setitem(sys.modules, missing, None)
    assert warmup("--model", model) == 2
    said = capsys.readouterr().err
    assert f"training needs {missing}: pip install" in said
    assert f"[{extra}]" in said
    assert not list(workplace.iterdir())
