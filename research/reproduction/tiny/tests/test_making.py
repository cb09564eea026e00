"""``python -m research.reproduction.tiny`` makes a model, and says how it is played with."""

import numpy as np
import pytest

from agents.tiny.data import Recipe

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_the_command_refuses_bad_input_without_a_traceback(tmp_path, capsys):
    from research.reproduction.tiny.__main__ import main

    for setting, wrong in (
        ("games=chess", "no game or scenario 'chess'"),
        ("games=3", "not iterable"),
        ("step=3", "a tiny model's recipe has no 'step' (did you mean 'steps'?); it has games, "),
        ("steps=few", "steps must be a whole number of at least 1, got 'few'"),
        ("seed=-1", "seed must be a whole number of at least 0, got -1"),
        ("learning_rate=fast", "learning_rate must be a finite number above 0, got 'fast'"),
        ("steps", "--set takes NAME=VALUE"),
    ):
        assert main(["--out", str(tmp_path / "x"), "--set", setting]) == 2
        assert wrong in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    assert main(["--out", str(tmp_path / "full")]) == 2
    assert "--force" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert "not a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_makes_and_describes_a_model(tmp_path, capsys):
    from agents import load_agent
    from research.reproduction.tiny.__main__ import main

    out = tmp_path / "model"
    settings = (word for name in ("steps=4", "examples=120", "seed=2") for word in ("--set", name))
    assert main(["--out", str(out), "--quick", *settings]) == 0
    assert f"saved {out}; play it with: textbench run --agent hf:{out}" in capsys.readouterr().err
    card = (out / "README.md").read_text()
    for part in ("--out DIR --quick --set steps=4", "- seed: 2", ", commit ", "Not evaluated."):
        assert part in card
    assert str(tmp_path) not in card
    assert (out / "model.safetensors").stat().st_mode & 0o444 == 0o444
    turn = load_agent(f"hf:{out}", max_tokens=4).act(["Player: (0, 3)"])[0]
    assert len(turn.response_ids or ()) <= 4


@pytest.mark.nightly
def test_the_quick_recipe_learns_to_play_and_to_say_what_is_true():
    from agents import Decoding, EpisodeTask, LanguageAgentPolicy, rollout
    from agents.common.intervals import mean_estimate
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import pretrain
    from research.reproduction.tiny.inside import LAKE
    from research.reproduction.tiny.statements import check

    made = pretrain(Recipe.quick(steps=500, examples=20_000))
    model = TransformersModel(made.model, made.tokenizer, name="quick")
    player = LanguageAgentPolicy(model, decoding=Decoding(max_tokens=48))
    tasks = [EpisodeTask.of(LAKE, LAKE.seed(k), protocol="random") for k in range(200)]
    episodes = list(rollout(player, tasks, max_concurrency=128))
    steps = [step for episode in episodes for step in episode.steps]
    success = mean_estimate(np.array([episode.successes["player_0"] for episode in episodes], float), (0, 1))
    assert success.low is not None
    assert success.low > 0.1  # random: about 0.01
    assert np.mean([not step.valid for step in steps]) < 0.02
    true, false, unread = np.sum([check(step.turn.response, step.observation) for step in steps], axis=0)
    assert true / (true + false + unread) > 0.9
