"""A Ray cluster that episodes are played on: ``with Cluster(address) as cluster: cluster.rollout(...)``."""

import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

from agents.cluster.connection import ANY, ClusterError, connected, workers_that_fit
from agents.cluster.rollout import ClusterRollout, Pace
from agents.cluster.worker import AskedSetup, PlayError, Setup
from agents.cluster.workers import SECONDS_BETWEEN_LOOKS, Workers
from agents.episode import EpisodeTask
from agents.loop.rollout import DEFAULT_CONCURRENCY

T = TypeVar("T")


class Cluster:
    """The cluster and its workers; leaving the ``with`` block lets them go.

    Machines that join while episodes are played get workers within seconds; if a machine is lost, the workers of others
    play its episodes. Entering raises a ClusterError without Ray, such a cluster, or room for a worker.

    Args:
        address: of the cluster; see :func:`~agents.cluster.connection.connected`.
        most_workers: at most so many workers; ``None`` for as many as there is room for.
        cpus: processor cores that each worker takes.
        gpus: GPUs that each worker takes; with a fraction several share one.
        sharers: how many processes use the cluster like this one, each with a share of its room.
    """

    def __init__(
        self,
        address: str = ANY,
        *,
        most_workers: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        sharers: int = 1,
    ) -> None:
        self._address, self._most_workers, self._sharers = address, most_workers, sharers
        self._need = {"CPU": cpus, "GPU": gpus}
        self._leaving = ExitStack()

    def __enter__(self) -> "Cluster":
        with ExitStack() as stack:
            stack.enter_context(connected(self._address))
            if not workers_that_fit(self._need):
                import ray

                needs, has = (
                    ", ".join(f"{amounts.get(name, 0.0):g} {name}" for name in self._need)
                    for amounts in (self._need, ray.cluster_resources())
                )
                raise ClusterError(
                    f"no machine of the cluster has room for a worker: one takes {needs}, and all machines together "
                    f"have {has}"
                )
            self._workers = Workers(self._need, self._most_workers, self._sharers)
            stack.callback(self._workers.close)
            self._leaving = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leaving.close()

    @property
    def workers(self) -> int:
        """How many there are, those just starting included."""
        return self._workers.count

    def rollout(
        self,
        setup: Setup[T],
        tasks: Iterable[EpisodeTask],
        total: int,
        *,
        news: Any = None,
        pace: Pace | None = None,
        timeout: float | None = None,
    ) -> Generator[T]:
        """Play every task, and yield what ``setup`` makes of its episode when it arrives, in no particular order.

        What is yielded depends on the tasks and the players alone, not on how many workers there are or which of them
        die. Closing the iterator lets the workers go that are still at it. Raise a PlayError if players fail on a
        worker, a ClusterError if workers can't be started or die again and again.

        Args:
            setup: who plays, and what is sent back.
            tasks: consumed lazily, as workers have room; no two have the same scenario and seed.
            total: how many tasks there are; they may end earlier.
            news: what comes with every portion of tasks (:meth:`~agents.cluster.worker.Setup.policies`). A reference of
                ``ray.put`` in it travels to every machine once.
            pace: how much is under way at once.
            timeout: seconds for the whole rollout; then it is broken off with a ``TimeoutError``.
        """
        deadline = None if timeout is None else monotonic() + timeout
        pace = pace or Pace(DEFAULT_CONCURRENCY)
        return ClusterRollout(self._workers, setup, iter(tasks), total, news, pace, deadline).play()

    def ask(self, setup: AskedSetup[Any], news: Any, question: Any, *, everywhere: bool = True) -> list[Any]:
        """Return the answers of the workers: of every one that is there, or of only one; raise as :meth:`rollout`."""
        import ray

        workers, sent = self._workers, ray.put(setup)
        answers: list[Any] = []
        while not answers:
            workers.grow(sys.maxsize if everywhere else 1)
            while started := workers.await_some([], 0.0 if workers.idle else SECONDS_BETWEEN_LOOKS):
                workers.welcome(started[0])
            asked = list(workers.idle) if everywhere else list(workers.idle)[:1]
            for worker, answer in [(worker, worker.ask.remote(sent, news, question)) for worker in asked]:
                try:
                    answers.append(ray.get(answer))
                except PlayError as error:  # Ray's error, which is also of the class of what was raised
                    raise getattr(error, "cause", error) from None
                except workers.deaths:
                    workers.idle.remove(worker)
                    workers.dismiss(worker)
        return answers
