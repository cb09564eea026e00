"""Running the command in this process."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmark.cli import main
from tests.benchmark.several_players import suite_with_strangers  # noqa: F401 - a fixture of several tests
from textgames.solving import blind_search


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def textbench(workplace, capsys):
    """``textbench("run", "--agent", "random")`` -> exit code, stdout, stderr."""

    def run(*arguments) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def short_search(monkeypatch):
    """Blind play of a game of one's own is looked for in few episodes; they are 10,000 where they have to tell much."""
    monkeypatch.setattr(blind_search, "SEARCH_EPISODES", 100)
    monkeypatch.setattr(blind_search, "REPORT_EPISODES", 1000)


@pytest.fixture(scope="session")
def played_once(tmp_path_factory):
    """Where the small run is kept for all tests, once the first of them has played it."""
    return tmp_path_factory.mktemp("played") / "small"


@pytest.fixture
def small_run(textbench, played_once):
    """A run of two agents on two scenarios, three episodes each."""
    if played_once.exists():
        shutil.copytree(played_once, "small")
        return Path("small")
    done = textbench(
        *("run", "--agent", "random", "--agent", "greedy", "--episodes", 3, "--out", "small", "--quiet"),
        *("--scenario", "frozen-lake", "--scenario", "frozen-lake-slippery"),
    )
    assert done.code == 0, done.err
    shutil.copytree("small", played_once)
    return Path("small")
