"""``python -m research.tiny`` makes a model, plays with it, and says what came of it."""

import math
from pathlib import Path

import pytest

from agents.tiny.recipe import Recipe

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_the_command_refuses_bad_input_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from research.tiny.__main__ import main

    assert main(["--out", str(tmp_path / "x"), "--games", "chess"]) == 2
    assert "no game or scenario 'chess'" in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    assert main(["--out", str(tmp_path / "full")]) == 2
    assert "--force" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert "not a folder" in capsys.readouterr().err


def test_the_command_says_what_is_wrong_with_the_state_that_it_would_go_on_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from research.tiny.__main__ import main

    (tmp_path / "model.partial").write_text("not a state")
    settings = ["--games", "frozen-lake-training", "--modes", "direct", "--examples", "40", "--steps", "1", "--quiet"]
    assert main(["--out", str(tmp_path / "model"), *settings, "--episodes", "0"]) == 2
    assert "model.partial is no checkpoint of a tiny model" in capsys.readouterr().err
    (tmp_path / "model.partial").unlink()
    assert main(["--out", str(tmp_path / "model"), *settings, "--episodes", "0"]) == 0
    assert not (tmp_path / "model.partial").exists()


@pytest.mark.slow
def test_the_command_makes_evaluates_and_describes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from agents import load_agent
    from research.tiny.__main__ import main

    out = tmp_path / "model"
    settings = ["--quick", "--steps", "4", "--examples", "120", "--episodes", "3", "--seed", "2"]
    assert main(["--out", str(out), *settings]) == 0
    said = capsys.readouterr()
    assert "this model, think" in said.out
    assert "saved" in said.err
    card = (out / "README.md").read_text()
    for row in ("| frozen-lake | this model, think | 3 |", "| frozen-lake | planner | 3 |", "--seed 2", "from commit"):
        assert row in card
    assert "--out DIR" in card
    assert str(tmp_path) not in card
    assert (out / "model.safetensors").stat().st_mode & 0o444 == 0o444
    turn = load_agent(f"hf:{out}", max_tokens=4).act(["Player: (0, 3)"])[0]
    assert len(turn.response_ids or ()) <= 4


def test_figures_are_those_of_the_played_episodes() -> None:
    from agents import load_agent
    from research.tiny.evaluation import evaluate

    figures = evaluate(load_agent("planner"), "frozen-lake", 20)
    assert (figures.episodes, figures.agent) == (20, "planner")
    assert figures.success.low <= figures.success.value == figures.returned.value <= figures.success.high
    assert figures.success.value > 0.9
    assert figures.invalid == (0, 0, 0)
    assert math.isnan(figures.truth)


@pytest.mark.slow
def test_the_quick_recipe_learns_to_play_and_to_say_what_is_true() -> None:
    from agents import Decoding, LanguageAgentPolicy
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import pretrain
    from research.tiny.evaluation import evaluate

    made = pretrain(Recipe.quick(steps=500, examples=20_000))
    model = TransformersModel(made.model, made.tokenizer, name="quick")
    figures = evaluate(LanguageAgentPolicy(model, decoding=Decoding(max_tokens=48)), "frozen-lake", 200)
    assert figures.success.low > 0.1  # random: about 0.01
    assert figures.invalid.value < 0.02
    assert figures.truth > 0.9
