"""Running the command in this process, in a folder of its own, without anybody's keys."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmark.cli import main
from tests.benchmark.several_players import suite_with_strangers  # noqa: F401 - a fixture of several tests


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def reference_cache(tmp_path_factory):
    """One cache of reference values for all tests, of the other workers too: its files are replaced as a whole."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return tmp_path_factory.getbasetemp().parent / "references"
    return tmp_path_factory.mktemp("references")


@pytest.fixture
def workplace(tmp_path, monkeypatch, reference_cache):
    """An empty working folder and a clean environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(reference_cache))
    return tmp_path


@pytest.fixture
def textbench(workplace, capsys):
    """``textbench("run", "--agent", "random")`` -> exit code, stdout, stderr."""

    def run(*arguments) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


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
