"""One rollout on the workers of a cluster: tasks are sent out in portions, and results come back as episodes end.

If a worker dies, the episodes of its portion that haven't come back are given to another worker. (Ray's own retries
would wait for the worker to come back, on a machine that may never have room for it, and would play the whole portion
again.)
"""

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil
from time import monotonic
from typing import Any, Generic, TypeVar

from agents.cluster.connection import ClusterError
from agents.cluster.worker import Place, PlayError, Setup
from agents.cluster.workers import SECONDS_BETWEEN_LOOKS, Workers
from agents.episode import EpisodeTask

T = TypeVar("T")

MOST_DEATHS = 3
"""Workers that may die over the same episodes."""
PORTIONS_IN_FLIGHT = 4
"""A portion is at most so many times what its worker has in flight, as there are fewer only at a portion's end."""


@dataclass(frozen=True)
class Pace:
    """How much is under way at once."""

    max_concurrency: int  #: the most episodes in flight on one worker; with ``together``, on all of them
    together: bool = False  #: the players of all workers ask one server, which has to bear it
    cautious: bool = False  #: hand out no more than is in flight, so that little is under way when the tasks end early
    evenly: bool = False  #: every worker gets its share in one portion: best for models that gain from large batches


@dataclass
class Portion:
    """Tasks that one worker plays, by their places; those that have come back are taken out."""

    tasks: dict[Place, EpisodeTask]
    in_flight: int
    deaths: int = 0


class ClusterRollout(Generic[T]):
    """See :meth:`agents.cluster.cluster.Cluster.rollout`, which has the same arguments."""

    def __init__(
        self,
        workers: Workers,
        setup: Setup[T],
        tasks: Iterator[EpisodeTask],
        total: int,
        news: Any,
        pace: Pace,
        deadline: float | None,
    ) -> None:
        import ray

        self._ray, self._workers = ray, workers
        # the setup travels to every machine once, and not with every portion
        self._setup, self._news, self._pace, self._deadline = ray.put(setup), news, pace, deadline
        self._tasks, self._total, self._left, self._all_out = tasks, total, total, total == 0
        self._orphans: deque[Portion] = deque()
        self._busy: dict[Any, tuple[Any, Portion]] = {}  # {stream of results: worker, what it plays}

    def play(self) -> Generator[T]:
        """Play everything; closing it lets the workers go that are still at it."""
        try:
            while True:
                useful = len(self._busy) + len(self._orphans) + (0 if self._all_out else self._left)
                self._workers.grow(min(useful, self._pace.max_concurrency) if self._pace.together else useful)
                while self._workers.idle and (portion := self._next_portion()) is not None:
                    worker, tasks = self._workers.idle.popleft(), list(portion.tasks.values())
                    play = worker.play.options(num_returns="streaming")
                    self._busy[play.remote(self._setup, self._news, tasks, portion.in_flight)] = worker, portion
                if not self._busy and not self._orphans and self._all_out:
                    return
                yield from self._wait()
        finally:
            for worker, _ in self._busy.values():
                self._workers.dismiss(worker)

    def _next_portion(self) -> Portion | None:
        """Return the next idle worker's portion; ``None`` if nothing is left, or no more may be in flight."""
        share = most = self._pace.max_concurrency
        if self._pace.together:
            in_flight = sum(portion.in_flight for _, portion in self._busy.values())
            share = min(max(1, most // self._workers.count), most - in_flight)
        if share == 0:
            return None
        if self._orphans:
            portion = self._orphans.popleft()
            portion.in_flight = share
            return portion
        if self._pace.evenly:
            size = ceil(self._total / self._workers.count)
        else:  # ever smaller portions, so that all workers come to an end together
            size = max(1, self._left // (2 * self._workers.count))
            size = min(size, share if self._pace.cautious else PORTIONS_IN_FLIGHT * share)
        tasks = list(islice(self._tasks, size))
        self._left -= len(tasks)
        self._all_out = len(tasks) < size or self._left == 0
        by_place = {(task.scenario, task.seed): task for task in tasks}
        if len(by_place) < len(tasks):
            raise ValueError("two tasks of a rollout have the same scenario and seed: their results look alike")
        return Portion(by_place, share) if tasks else None

    def _wait(self) -> list[T]:
        """Return the results that come back next; none if nothing happens for a while."""
        timeout = SECONDS_BETWEEN_LOOKS
        if self._deadline is not None:
            timeout = min(timeout, self._deadline - monotonic())
            if timeout <= 0:
                under_way = sum(len(portion.tasks) for _, portion in self._busy.values())
                raise TimeoutError(f"out of time with {under_way} episodes under way, which were cancelled")
        results: list[T] = []
        for what in self._workers.await_some(self._busy, timeout):
            if what in self._busy:
                results += self._take(what)
            else:
                self._workers.welcome(what)
        return results

    def _take(self, stream: Any) -> list[T]:
        """Return the next parcel of a worker's results; at its end the worker is idle again."""
        worker, portion = self._busy[stream]
        try:
            parcel = self._ray.get(next(stream))
        except StopIteration:
            del self._busy[stream]
            self._workers.idle.append(worker)
            return []
        except PlayError as error:  # Ray's error, which is also of the class of what was raised
            raise getattr(error, "cause", error) from None
        except self._workers.deaths as error:
            del self._busy[stream]
            self._workers.dismiss(worker)
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
