"""The command, tasks, servers of hand-written answers as processes of their own, and learned values."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from research.improve.budget import Budget, SpendingMeter
from research.improve.task import ImprovementTask
from research.improve.values import About, StepValue, learn, write_value
from research.improve.values.measure import SCENARIO, random_play

ROOT = Path(__file__).parents[3]
USELESS = ("useless-0", "useless-1", "useless-2")


def task_of(
    out: Path, agent: dict[str, Any], *scenarios: str, said: list[str] | None = None, seed: int = 0, **budget: Any
) -> ImprovementTask:
    """Return a task in a folder, whose lines for the user are added to ``said``."""
    out.mkdir(parents=True, exist_ok=True)
    meter = SpendingMeter(Budget(**budget), out / "seconds.json")
    say: Callable[[str], None] = ([] if said is None else said).append
    return ImprovementTask(agent, scenarios or ("frozen-lake",), meter, seed, out, say, quiet=True)


class Improved(NamedTuple):
    """What came of an improvement: what was said, the document and the agent of its folder."""

    out: str
    err: str
    folder: Path

    @property
    def about(self) -> dict[str, Any]:
        return json.loads((self.folder / "improvement.json").read_text())

    @property
    def changed(self) -> bool:
        return self.about["changed"]

    @property
    def agent(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "agent.toml").read_text())

    def scores(self, figure: str = "success_rate") -> list[float]:
        return [self.about[when][0][figure]["value"] for when in ("before", "after")]


@pytest.fixture
def improve(textbench):
    """``improve("gepa", "openai:m", "--quiet", seeds=3)``: the command, with options of the method by name."""

    def run(method: str, agent: str, /, *more: Any, scenario: str = "frozen-lake", scored: int = 0, **own: Any):
        if method in ("preferences", "co-evolve", "mixed", "lspo", "gepa"):
            pytest.importorskip("gepa" if method == "gepa" else "trl")
        sets = [word for name, value in own.items() for word in ("--set", f"{name}={value}")]
        done = textbench(
            *("improve", method, "--agent", agent, "--scenario", scenario, "--eval-episodes", scored),
            *("--out", "o", *more, *sets),
        )
        assert done.code == 0, done.err
        return Improved(done.out, done.err, Path("o"))

    return run


def served(answers: str) -> Iterator[str]:
    command = [sys.executable, "-m", "research.improve.tests.written_server", answers]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture(scope="session")
def heeding_url():
    yield from served("heeding")


@pytest.fixture(scope="session")
def writing_url():
    yield from served("writing")


@pytest.fixture
def server(workplace, heeding_url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    monkeypatch.setenv("OPENAI_BASE_URL", heeding_url)
    return workplace


@pytest.fixture(scope="session")
def values(tmp_path_factory):
    """Folders of a value that is learnt from random play of small lakes, and of three that have learnt nothing."""
    place, about = tmp_path_factory.mktemp("values"), {"scenarios": (SCENARIO,), "targets": "td"}
    write_value(learn([one.decisions for one in random_play(SCENARIO, 300, 0)], about), place / "learned")
    with torch.random.fork_rng(devices=[]):
        for seed, name in enumerate(USELESS):
            torch.manual_seed(seed)
            write_value(StepValue(About(decisions=1, **about)), place / name)
    return place
