"""The method lspo as its user runs it: it goes on where it was killed, and more seers tell; or the agent stays."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from research.improve.methods import learning
from research.improve.methods.lspo.improve import play_in
from research.improve.methods.lspo.speeches import standings
from research.improve.tests.lspo.talking_model import make_talking_model
from textgames.social.werewolf.rules import SEER


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    pytest.importorskip("trl")
    return make_talking_model("Talker", tmp_path_factory.mktemp("talking") / "base")


def command(base: dict, *more: object) -> list[str]:
    own = ("--agent", base["spec"], "--mode", "direct", "--scenario", "werewolf-5", "--eval-episodes", 0)
    return [str(one) for one in ("improve", "lspo", *own, "--out", "o", *more)]


def share_told(textbench, out: str, *agent: object) -> float:
    """How often a seer who has seen a wolf says so."""
    own = ("run", "--agent", *agent, "--temperature", 1, "--scenario", "werewolf-5", "--episodes", 400, "--quiet")
    assert textbench(*own, "--out", out).code == 0
    seers = [one for one in play_in([Path(out)], "direct").speeches if one.role == SEER]
    knew = [one for one in seers if any(kind.startswith("wolf") for kind in standings(one.decision.state, one.me))]
    assert len(knew) > 100
    return sum("I am the seer" in one.words for one in knew) / len(knew)


def told_in(err: str) -> list[str]:
    return [
        line
        for line in err.splitlines()
        if line.startswith("round ") or (" before " in line and "mean return" not in line)
    ]


@pytest.mark.nightly  # minutes of a core; what the seers prefer, in test_lspo, takes seconds
def test_killed_in_its_training_it_goes_on_with_the_same_pairs_and_more_seers_tell(
    base, workplace, textbench, monkeypatch
):
    monkeypatch.setattr(learning, "COMPARED", 2)  # who wins more isn't what this is about
    # of the seeds 0, 1 and 2 the one with many pairs at so few traversals; the others change nothing
    sizes = ("--set", "episodes=150", "--set", "attempts=2", "--budget-calls", 6000)  # for one round of two
    settings = ("--seed", 2, "--set", "traversals=4000", *sizes)
    with Path("first.txt").open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmark.cli", *command(base, *settings)],
            stderr=stream,
        )  # fmt: skip
    while process.poll() is None and not Path("o/dpo-model-1").exists():
        time.sleep(0.05)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert not Path("o/model-1").exists()

    done = textbench(*command(base, *settings))
    assert done.code == 0, done.err
    told = told_in(done.err)
    assert len(told) > 1
    assert told == told_in(Path("first.txt").read_text())  # the same play, and the same pairs
    assert "the budget is spent" in done.err  # in the play for a second round
    assert not Path("o/dpo-model-1").exists()

    shutil.move("o", "moved")
    before = share_told(textbench, "before", base["spec"], "--mode", "direct")
    assert share_told(textbench, "after", "hf:moved/model-1", "--mode", "direct") > before + 0.05


@pytest.mark.nightly
def test_where_all_speeches_are_alike_there_is_nothing_to_prefer(base, workplace, textbench):
    done = textbench(*command(base, "--set", "clusters=1", "--set", "episodes=5", "--set", "traversals=20"))
    assert done.code == 0, done.err
    assert ", 0 pairs of answers" in done.err
    assert Path("o/agent.toml").read_text().startswith(f'spec = "{base["spec"]}"\n')
