"""The method lspo as its user runs it: a model comes to say what helps its side, or it stays as it is."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.improve.methods.lspo.latent import play_in
from benchmark.improve.methods.lspo.speeches import standings
from tests.benchmark.improve.talking_model import make_talking_model, played_by
from textgames.social.werewolf.rules import SEER

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    pytest.importorskip("trl")
    return make_talking_model("Talker", tmp_path_factory.mktemp("talking") / "base")


def command(base: dict, *more: object) -> list[str]:
    own = ("--agent", base["spec"], "--mode", "direct", "--scenario", "werewolf-5", "--eval-episodes", 0)
    settings = ("--set", "episodes=100", "--set", "attempts=2", "--budget-calls", 3500)  # for one round of two
    return [str(one) for one in ("improve", "lspo", *own, *settings, "--out", "o", *more)]


def share_told(folder: Path) -> float:
    """How often a seer who has seen a wolf says so."""
    seers = [one for one in play_in([folder], "direct").speeches if one.role == SEER]
    knew = [one for one in seers if any(kind.startswith("wolf") for kind in standings(one.decision.state, one.me))]
    assert len(knew) > 30
    return sum("I am the seer" in one.words for one in knew) / len(knew)


@pytest.fixture(scope="module")
def improved(base, tmp_path_factory):
    """The folder of a call that nothing has interrupted, and what it said."""
    place = tmp_path_factory.mktemp("improved")
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.cli", *command(base)],
        cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place / "o", done.stderr


def test_a_model_says_more_often_what_helps_its_side(base, improved, workplace):
    folder, said = improved
    assert "seer: 'I am the seer, and ⟦wolf 1⟧ is a wolf.' before" in said
    assert "the budget is spent" in said  # before a second round
    before = share_told(played_by(base, 200, workplace))
    after = share_told(played_by({**base, "spec": f"hf:{folder / 'model-1'}"}, 200, workplace))
    assert before < 0.6
    assert after > before + 0.15


def test_its_folder_may_be_moved_and_plays(improved, workplace, textbench):
    shutil.copytree(improved[0], "moved")
    assert Path("moved/agent.toml").read_text().startswith('spec = "hf:model-1"\n')
    done = textbench("run", "--agent", "moved", "--scenario", "werewolf-5", "--episodes", 3, "--out", "run", "--quiet")
    assert done.code == 0, done.err
    assert len(play_in([Path("run")], "direct").speeches) > 6


def test_killed_in_its_training_it_goes_on_and_ends_equal_to_the_last_bit(base, improved, workplace, textbench):
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark.cli", *command(base)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    while process.poll() is None and not Path("o/dpo-model-1").exists():
        time.sleep(0.05)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert not Path("o/model-1").exists()
    assert textbench(*command(base, "--quiet")).code == 0
    for name in ("agent.toml", "model-1/adapter_model.safetensors"):
        assert Path("o", name).read_bytes() == (improved[0] / name).read_bytes()


def test_where_all_speeches_are_one_there_is_nothing_to_prefer(base, workplace, textbench):
    done = textbench(*command(base, "--set", "clusters=1", "--set", "episodes=5"))
    assert done.code == 0, done.err
    assert "0 pairs of answers" in done.err
    assert Path("o/agent.toml").read_text().startswith(f'spec = "{base["spec"]}"\n')
