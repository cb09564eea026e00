"""The workers of a cluster: as many as it has room for, also when machines come and go."""

from collections import deque
from collections.abc import Collection
from time import monotonic, sleep
from typing import Any

from agents.cluster.connection import ClusterError, workers_that_fit
from agents.cluster.worker import EpisodeWorker

MOST_FAILED_STARTS = 3
"""Starts that may fail in a row. A worker can die while it starts, with its machine; if none can start, something is
missing there."""
SECONDS_BETWEEN_LOOKS = 1.0
"""How often the cluster is searched for machines that have come."""


class Workers:
    """Actors of Ray that play episodes: as many of ``most`` as there is room for, in the share of one of ``sharers``.

    They are never restarted: one that died is dropped, and a new one is started if there is room for it. ``need`` is
    ``{resource: amount}`` of each, by Ray's names. ``idle`` has those that wait, the one that has waited longest first.
    """

    def __init__(self, need: dict[str, float], most: int | None, sharers: int = 1) -> None:
        import ray

        self._ray, self._need, self._most, self._sharers = ray, need, most, sharers
        self._make = ray.remote(num_cpus=need["CPU"], num_gpus=need["GPU"])(EpisodeWorker)
        self.idle: deque[Any] = deque()
        self.starting: dict[Any, Any] = {}
        self.count = 0
        lost = ray.exceptions
        self.deaths = (lost.RayActorError, lost.ObjectLostError, lost.OutOfMemoryError, lost.NodeDiedError)
        self._room = 0
        self._looked_at = float("-inf")
        self._failed_starts = 0

    def grow(self, useful: int) -> None:
        """Start what is missing of ``useful`` workers, as far as there is room."""
        if monotonic() - self._looked_at >= SECONDS_BETWEEN_LOOKS:
            room = workers_that_fit(self._need)
            self._room, self._looked_at = max(min(room, 1), room // self._sharers), monotonic()
        most = min(useful, self._room if self._most is None else min(self._room, self._most))
        while self.count < most:
            worker = self._make.remote()
            self.starting[worker.__ray_ready__.remote()] = worker
            self.count += 1

    def await_some(self, busy: Collection[Any], timeout: float) -> list[Any]:
        """Return the first reference, of busy and of starting workers, that is ready within the time."""
        waited_for = [*busy, *self.starting]
        if not waited_for:  # every machine with room for a worker is gone; another one may come
            sleep(timeout)
            return []
        ready: list[Any] = self._ray.wait(waited_for, num_returns=1, timeout=timeout)[0]
        return ready

    def welcome(self, started: Any) -> None:
        """Take in a worker that has started; a ClusterError if again and again workers couldn't start."""
        worker = self.starting.pop(started)
        try:
            self._ray.get(started)
        except self._ray.exceptions.RayError as error:
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
        self._ray.kill(worker)
        self.count -= 1

    def close(self) -> None:
        """Let those go that aren't at work."""
        for worker in (*self.idle, *self.starting.values()):
            self.dismiss(worker)
        self.idle.clear()
        self.starting.clear()
