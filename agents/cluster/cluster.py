"""A Ray cluster that episodes are played on: ``with Cluster(address) as cluster: cluster.rollout(...)``.

Tasks are sent out in portions, and results come back as episodes end. If a worker dies, the episodes of its portion
that haven't come back are given to another worker. (Ray's own retries would wait for the worker to come back, on a
machine that may never have room for it, and would play the whole portion again.)
"""

import sys
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from math import ceil
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Generic, TypeVar

from agents.cluster.connection import ANY, ClusterError, connected, workers_that_fit
from agents.cluster.worker import AskedSetup, EpisodeWorker, Place, PlayError, Setup
from agents.episode import EpisodeTask
from agents.loop.rollout import DEFAULT_CONCURRENCY

T = TypeVar("T")

MOST_FAILED_STARTS = 3
"""Starts that may fail in a row. A worker can die while it starts, with its machine; if none can start, something is
missing there."""
SECONDS_BETWEEN_LOOKS = 1.0
"""The time between two searches of the cluster for machines that have come."""
MOST_DEATHS = 3
"""Workers that may die over the same episodes."""
PORTIONS_IN_FLIGHT = 4
"""A portion is at most so many times what its worker has in flight, as there are fewer only at a portion's end."""


@dataclass(frozen=True)
class Pace:
    """The pace of a rollout: how much is under way at once."""

    max_concurrency: int  #: the most episodes in flight on one worker; with ``together``, on all of them
    together: bool = False  #: the players of all workers ask one server, which has to bear it
    cautious: bool = False  #: hand out no more than is in flight, so that little is under way when the tasks end early
    evenly: bool = False  #: every worker gets its share in one portion: best for models that gain from large batches


class Cluster:
    """The cluster and its workers; leaving the ``with`` block lets them go.

    Machines that join while episodes are played get workers within seconds. A worker is an actor of Ray and never
    restarted: one that died is dropped, and a new one is started if there is room for it. Entering raises a
    ClusterError without Ray, such a cluster, or room for a worker.

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
        self._address, self._most, self._sharers = address, most_workers, sharers
        self._need = {"CPU": cpus, "GPU": gpus}
        self._leaving = ExitStack()
        self._failed_starts, self._room, self._looked_at = 0, 0, float("-inf")
        self.idle: deque[Any] = deque()
        """Workers that wait, the one that has waited longest first."""
        self.starting: dict[Any, Any] = {}
        self.workers = 0
        """The number of workers, those just starting included."""

    def __enter__(self) -> "Cluster":
        with ExitStack() as stack:
            stack.enter_context(connected(self._address))
            import ray

            if not workers_that_fit(self._need):
                needs, has = (
                    ", ".join(f"{amounts.get(name, 0.0):g} {name}" for name in self._need)
                    for amounts in (self._need, ray.cluster_resources())
                )
                raise ClusterError(
                    f"no machine of the cluster has room for a worker: one takes {needs}, and all machines together "
                    f"have {has}"
                )
            self.ray, lost = ray, ray.exceptions
            self.deaths = (lost.RayActorError, lost.ObjectLostError, lost.OutOfMemoryError, lost.NodeDiedError)
            self._make = ray.remote(num_cpus=self._need["CPU"], num_gpus=self._need["GPU"])(EpisodeWorker)
            stack.callback(self._let_go)
            self._leaving = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leaving.close()

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
        worker, a ClusterError if workers can't be started or die again and again, a TimeoutError after ``timeout``.

        Args:
            setup: who plays, and what is sent back.
            tasks: consumed lazily, as workers have room; no two have the same scenario and seed.
            total: how many tasks there are; they may end earlier.
            news: comes with every portion of tasks. A reference of ``ray.put`` in it travels to every machine once.
            pace: how much is under way at once.
            timeout: seconds for the whole rollout.
        """
        deadline = None if timeout is None else monotonic() + timeout
        pace = pace or Pace(DEFAULT_CONCURRENCY)
        return _Rollout(self, setup, iter(tasks), total, news, pace, deadline).play()

    def ask(self, setup: AskedSetup[Any], news: Any, question: Any, *, everywhere: bool = True) -> list[Any]:
        """Return the answers of the workers: of every one that is there, or of only one; raise as :meth:`rollout`."""
        sent = self.ray.put(setup)
        answers: list[Any] = []
        while not answers:
            self.grow(sys.maxsize if everywhere else 1)
            while started := self.await_some([], 0.0 if self.idle else SECONDS_BETWEEN_LOOKS):
                self.welcome(started[0])
            asked = list(self.idle) if everywhere else list(self.idle)[:1]
            for worker, answer in [(worker, worker.ask.remote(sent, news, question)) for worker in asked]:
                try:
                    answers.append(self.ray.get(answer))
                except PlayError as error:  # Ray's error, which is also of the class of what was raised
                    raise getattr(error, "cause", error) from None
                except self.deaths:
                    self.idle.remove(worker)
                    self.dismiss(worker)
        return answers

    # ------------------------------------------------------------ workers

    def grow(self, useful: int) -> None:
        """Start what is missing of ``useful`` workers, as far as there is room."""
        if monotonic() - self._looked_at >= SECONDS_BETWEEN_LOOKS:
            room = workers_that_fit(self._need)
            self._room, self._looked_at = max(min(room, 1), room // self._sharers), monotonic()
        most = min(useful, self._room if self._most is None else min(self._room, self._most))
        while self.workers < most:
            worker = self._make.remote()
            self.starting[worker.__ray_ready__.remote()] = worker
            self.workers += 1

    def await_some(self, busy: Collection[Any], timeout: float) -> list[Any]:
        """Return the first reference, of busy and of starting workers, that is ready within the time."""
        waited_for = [*busy, *self.starting]
        if not waited_for:  # every machine with room for a worker is gone; another one may come
            sleep(timeout)
            return []
        ready: list[Any] = self.ray.wait(waited_for, num_returns=1, timeout=timeout)[0]
        return ready

    def welcome(self, started: Any) -> None:
        """Take in a worker that has started; a ClusterError if again and again workers couldn't start."""
        worker = self.starting.pop(started)
        try:
            self.ray.get(started)
        except self.ray.exceptions.RayError as error:
            self.dismiss(worker)
            self._failed_starts += 1
            if self._failed_starts >= MOST_FAILED_STARTS:
                reason = str(error).strip().splitlines()[-1].strip()
                raise ClusterError(
                    f"workers can't be started on the cluster: {reason}; its machines need textbench with the extras "
                    "that the agents take, as here"
                ) from None
        else:
            self.idle.append(worker)
            self._failed_starts = 0

    def dismiss(self, worker: Any) -> None:
        """Let a worker go at once; one that has died already is only forgotten."""
        self.ray.kill(worker)
        self.workers -= 1

    def _let_go(self) -> None:
        for worker in (*self.idle, *self.starting.values()):
            self.dismiss(worker)
        self.idle.clear()
        self.starting.clear()


@dataclass
class _Portion:
    """Tasks that one worker plays, by their places; those that have come back are taken out."""

    tasks: dict[Place, EpisodeTask]
    in_flight: int
    deaths: int = 0


class _Rollout(Generic[T]):
    """One :meth:`Cluster.rollout`, with its arguments."""

    def __init__(
        self,
        cluster: Cluster,
        setup: Setup[T],
        tasks: Iterator[EpisodeTask],
        total: int,
        news: Any,
        pace: Pace,
        deadline: float | None,
    ) -> None:
        # the setup travels to every machine once, and not with every portion
        self._cluster, self._setup, self._news = cluster, cluster.ray.put(setup), news
        self._pace, self._deadline = pace, deadline
        self._tasks, self._total, self._left, self._all_out = tasks, total, total, total == 0
        self._orphans: deque[_Portion] = deque()
        self._busy: dict[Any, tuple[Any, _Portion]] = {}  # {stream of results: worker, what it plays}

    def play(self) -> Generator[T]:
        cluster = self._cluster
        try:
            while True:
                useful = len(self._busy) + len(self._orphans) + (0 if self._all_out else self._left)
                cluster.grow(min(useful, self._pace.max_concurrency) if self._pace.together else useful)
                while cluster.idle and (portion := self._next_portion()) is not None:
                    worker, tasks = cluster.idle.popleft(), list(portion.tasks.values())
                    play = worker.play.options(num_returns="streaming")
                    self._busy[play.remote(self._setup, self._news, tasks, portion.in_flight)] = worker, portion
                if not self._busy and not self._orphans and self._all_out:
                    return
                yield from self._wait()
        finally:
            for worker, _ in self._busy.values():
                cluster.dismiss(worker)

    def _next_portion(self) -> _Portion | None:
        """Return the next idle worker's portion; ``None`` if nothing is left, or no more may be in flight."""
        share = most = self._pace.max_concurrency
        if self._pace.together:
            in_flight = sum(portion.in_flight for _, portion in self._busy.values())
            share = min(max(1, most // self._cluster.workers), most - in_flight)
        if share == 0:
            return None
        if self._orphans:
            portion = self._orphans.popleft()
            portion.in_flight = share
            return portion
        if self._pace.evenly:
            size = ceil(self._total / self._cluster.workers)
        else:  # ever smaller portions, so that all workers come to an end together
            size = max(1, self._left // (2 * self._cluster.workers))
            size = min(size, share if self._pace.cautious else PORTIONS_IN_FLIGHT * share)
        tasks = list(islice(self._tasks, size))
        self._left -= len(tasks)
        self._all_out = len(tasks) < size or self._left == 0
        by_place = {(task.scenario, task.seed): task for task in tasks}
        if len(by_place) < len(tasks):
            raise ValueError("two tasks of a rollout have the same scenario and seed: their results look alike")
        return _Portion(by_place, share) if tasks else None

    def _wait(self) -> list[T]:
        """Return the results that come back next; none if nothing happens for a while."""
        timeout = SECONDS_BETWEEN_LOOKS
        if self._deadline is not None:
            timeout = min(timeout, self._deadline - monotonic())
            if timeout <= 0:
                under_way = sum(len(portion.tasks) for _, portion in self._busy.values())
                raise TimeoutError(f"out of time with {under_way} episodes under way, which were cancelled")
        results: list[T] = []
        for what in self._cluster.await_some(self._busy, timeout):
            if what in self._busy:
                results += self._take(what)
            else:
                self._cluster.welcome(what)
        return results

    def _take(self, stream: Any) -> list[T]:
        """Return the next parcel of a worker's results; at its end the worker is idle again."""
        worker, portion = self._busy[stream]
        try:
            parcel = self._cluster.ray.get(next(stream))
        except StopIteration:
            del self._busy[stream]
            self._cluster.idle.append(worker)
            return []
        except PlayError as error:  # Ray's error, which is also of the class of what was raised
            raise getattr(error, "cause", error) from None
        except self._cluster.deaths as error:
            del self._busy[stream]
            self._cluster.dismiss(worker)
            portion.deaths += 1
            if portion.tasks and portion.deaths >= MOST_DEATHS:
                (scenario, seed), *others = portion.tasks
                raise ClusterError(
                    f"{portion.deaths} workers died over the same {1 + len(others)} episodes, of {scenario} from seed "
                    f"{seed} on: {' '.join(str(error).split())[:300]}"
                ) from None
            if portion.tasks:
                self._orphans.append(portion)
            return []
        return [result for place, result in parcel if portion.tasks.pop(place, None) is not None]
