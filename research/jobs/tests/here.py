"""Do an experiment's jobs in the process of a test: a worker's imports take longer than a miniature's jobs.

Workers have tests of their own, :mod:`research.jobs.tests.test_schedule`; the miniature of the reproduction has one.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

import pytest

from research.jobs import schedule


class _Here(Executor):
    def __init__(self, _processes: int, _context: Any, _begin: Any, arguments: tuple[Any, ...]) -> None:
        schedule._shares, schedule._stop, *_ = arguments

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done


@contextmanager
def jobs_here() -> Iterator[None]:
    """Do the jobs of a command, one after the other, as a single worker does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_shares", "_stop"):
            patch.setattr(schedule, name, None)
        patch.setattr(schedule, "ProcessPoolExecutor", _Here)
        yield
