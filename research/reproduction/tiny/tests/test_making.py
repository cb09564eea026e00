"""``python -m research.reproduction.tiny`` makes a model, says how it is played with, and keeps what was made."""

import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from agents import Decoding, EpisodeTask, LanguageAgentPolicy, load_agent, rollout
from agents.common.intervals import mean_estimate
from agents.models.local.transformers import TransformersModel
from agents.tiny import Recipe, pretrain
from research.reproduction.tiny.__main__ import main
from research.reproduction.tiny.inside import LAKE
from research.reproduction.tiny.statements import check

QUICK = ["--quick", "--quiet", "--set", "modes=direct", "--set", "examples=300"]


def test_the_command_refuses_bad_input_without_a_traceback(tmp_path, capsys):
    for setting, wrong in (
        ("games=chess", "no game or scenario 'chess'"),
        ("step=3", "a tiny model's recipe has no 'step' (did you mean 'steps'?); it has games, "),
        ("steps=few", "steps must be a whole number of at least 1, got 'few'"),
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


@pytest.mark.slow
def test_a_full_disk_leaves_no_half_model(tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert main(["--out", str(tmp_path / "model"), *QUICK, "--set", "steps=2"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_a_polite_kill_can_be_gone_on_from(tmp_path):
    command = [sys.executable, "-m", "research.reproduction.tiny", "--out", str(tmp_path / "model"), *QUICK, "--set"]
    process = subprocess.Popen([*command, "steps=5000"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "model.partial").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "the same command resumes" in told
    assert (tmp_path / "model.partial").exists()
