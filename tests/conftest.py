"""For all tests: Ctrl-C works, however they were started; one thread each; the longest test comes first; no garbage
is looked for where there is none; and a folder to work in, without anybody's keys.
"""

import contextlib
import gc
import os
import signal

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The README's commands take two minutes: begun last, they would leave the other worker idle."""
    items.sort(key=lambda item: item.name != "test_commands_in_order")


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
