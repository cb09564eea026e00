"""The loop for players behind servers: every episode at its own pace, on an event loop in a thread of its own.

The consumer's thread hands out the tasks and takes the episodes, so requests in flight continue while it writes to
disk, and all of it works inside a notebook, whose own event loop is running already.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from functools import partial
from inspect import isawaitable
from queue import Empty, SimpleQueue
from time import monotonic
from types import TracebackType
from typing import Any

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import AnswerStore, LiveEpisode, Policies, all_policies, ask, check_turn
from agents.turn import Policy, Turn, TurnRequest, is_served

_COLLECTOR_THRESHOLD = 10_000
"""New container objects before a collection; Python's own default is 700."""

Ask = Callable[[TurnRequest], Coroutine[Any, Any, Turn]]


def concurrent_rollout(
    policies: Policies,
    tasks: Iterator[EpisodeTask | None],
    max_concurrency: int,
    deadline: float | None,
    on_step: Callable[[EpisodeTask, Step], None] | None,
    answers: AnswerStore | None = None,
) -> Iterator[Episode]:
    """Play ``tasks`` with up to ``max_concurrency`` episodes in flight; see :func:`agents.loop.rollout.rollout`."""
    finished: SimpleQueue[Future[Episode] | None] = SimpleQueue()  # ``None``: a step was played, there may be a task
    in_flight: set[Future[Episode]] = set()
    held_back = False  # whether there was no task for now, and may be one after the next step

    def stepped(task: EpisodeTask, step: Step) -> None:
        if on_step is not None:
            on_step(task, step)
        if held_back:
            finished.put(None)

    with _LoopThread(policies, answers) as player:
        while True:
            held_back = False
            while len(in_flight) < max_concurrency and not held_back:
                try:
                    task = next(tasks)
                except StopIteration:
                    break
                held_back = task is None
                if task is not None:
                    future = player.submit(task, stepped)
                    in_flight.add(future)
                    future.add_done_callback(finished.put)
            if not in_flight:
                return
            try:
                ended = finished.get(timeout=None if deadline is None else max(deadline - monotonic(), 0))
            except Empty:
                raise TimeoutError(
                    f"out of time with {len(in_flight)} episodes in flight, which were cancelled"
                ) from None
            if ended is not None:
                in_flight.remove(ended)
                yield ended.result()


class _LoopThread:
    """An event loop in a thread; leaving the ``with`` block cancels what it plays and closes all connections."""

    def __init__(self, policies: Policies, kept: AnswerStore | None) -> None:
        self._policies, self._kept = policies, kept
        self._players = {id(policy): policy for policy in all_policies(policies)}
        self._ask: dict[int, Ask] = {
            key: partial(_ask, policy) if is_served(policy) else _Batcher(policy).ask
            for key, policy in self._players.items()
        }
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="rollout", daemon=True)

    def __enter__(self) -> "_LoopThread":
        self._thresholds = gc.get_threshold()
        # a full collection walks everything that is loaded, a quarter of a second in which all requests in flight stand
        # still: with 256 of them it cost a quarter of the throughput
        gc.freeze()
        gc.set_threshold(max(self._thresholds[0], _COLLECTOR_THRESHOLD), *self._thresholds[1:])
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)

    def submit(self, task: EpisodeTask, on_step: Callable[[EpisodeTask, Step], None]) -> Future[Episode]:
        return asyncio.run_coroutine_threadsafe(self._play(task, on_step), self._loop)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set_result(None)
        await self._stop.wait()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for policy in self._players.values():
            close = getattr(policy, "aclose", None)
            if close is not None:
                await close()

    async def _play(self, task: EpisodeTask, on_step: Callable[[EpisodeTask, Step], None]) -> Episode:
        live = LiveEpisode(task, self._policies)
        while not live.over:
            requests = live.requests()
            asks = [self._answer(live, player, request) for player, request in requests.items()]
            turns = [await asks[0]] if len(asks) == 1 else await asyncio.gather(*asks)
            for step in live.play(dict(zip(requests, turns, strict=True))):
                on_step(task, step)
        return live.finish()

    async def _answer(self, live: LiveEpisode, player: str, request: TurnRequest) -> Turn:
        policy = live.policies[player]
        kept = self._kept if is_served(policy) else None  # others answer again for nothing
        turn = None if kept is None else kept.recall(live.task, request)
        if turn is None:
            turn = await self._ask[id(policy)](request)
            if kept is not None:
                kept.keep(live.task, request, turn)
        return turn


async def _ask(policy: Policy, request: TurnRequest) -> Turn:
    """Ask a player behind a server, which may be a user's own class."""
    answer: Any = policy.act_async(request)  # type: ignore[attr-defined]
    turn = await answer if isawaitable(answer) else answer
    check_turn(policy, turn)
    return turn  # type: ignore[no-any-return]


class _Batcher:
    """A player of this process among players behind servers: it is asked for all that has piled up at once."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._waiting: list[tuple[TurnRequest, asyncio.Future[Turn]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, request: TurnRequest) -> Turn:
        future: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                turns = await asyncio.to_thread(ask, self._policy, [request for request, _ in batch])
                outcomes = list(zip(batch, turns, strict=True))
            except Exception as error:  # noqa: BLE001 - raised if the turn is awaited
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), turn in outcomes:
                if not future.done():
                    future.set_result(turn)
