"""For all tests: Ctrl-C works, however they were started; one thread each; and the longest test comes first."""

import contextlib
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
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The README's commands take two minutes: begun last, they would leave the other worker idle."""
    items.sort(key=lambda item: item.name != "test_commands_in_order")
