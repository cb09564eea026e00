"""For all tests, those of the product and those of research.

Ctrl-C works, however the tests were started; each process has one thread; the longest test comes first; no garbage is
looked for where there is none; and a test has a folder to work in, without anybody's keys, and runs commands there.
"""

import contextlib
import gc
import os
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

# What a shell starts in the background ignores Ctrl-C, and so does everything that it starts in turn; the tests of
# Ctrl-C would then wait for what can't come. (Python's own handler is not passed on, so children get the default.)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# The models of the tests are so small that threads cost more than they save, above all beside other workers. It is set
# before anything imports torch, and what tests start has it, too.
os.environ["OMP_NUM_THREADS"] = "1"

# What is imported and collected stays to the end, in millions of objects: looking for garbage among them took a tenth
# of the time. So it isn't looked for while tests are collected, not among those, and later less often.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


MINUTES = ("test_a_recipe_as_written_reaches_what_is_stated", "test_commands_in_order")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes a minute and more, then with research, whose files make a miniature each.

    What another worker takes over at the end is then short, and shares nothing that would be made twice.
    """
    items.sort(key=lambda item: (item.name.partition("[")[0] not in MINUTES, not item.nodeid.startswith("research/")))


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
def added_players(monkeypatch):
    """The players of a package that is installed: ``many(AGENT)``, ``either(AGENT, AGENT)``, ``script:FILE`` ..."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "tests/added"))


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def textbench(workplace, capsys):
    """``textbench("run", "--agent", "random")`` -> exit code, stdout, stderr."""

    from benchmark.cli import main

    def run(*arguments) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def short_search(monkeypatch):
    """Blind play of a game of one's own is looked for in few episodes; they are 10,000 where they have to tell much."""
    from textgames.solving import blind

    monkeypatch.setattr(blind, "SEARCH_EPISODES", 100)
    monkeypatch.setattr(blind, "REPORT_EPISODES", 1000)


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
