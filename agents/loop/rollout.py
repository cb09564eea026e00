"""The loop: policies and episode tasks in, episodes out, as they finish.

``tasks -> [reset -> observations -> policy -> responses -> step]* -> Episode``. The benchmark's runner and the
fine-tuner's rollouts are both this one function.

Players behind servers are asked on an event loop in a thread of its own, every episode at its own pace. The consumer's
thread hands out the tasks and takes the episodes, so requests in flight continue while it writes to disk, and all of it
works inside a notebook, whose own event loop is running already.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from inspect import isawaitable
from queue import Empty, SimpleQueue
from time import monotonic, process_time
from types import TracebackType
from typing import Any

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import AnswerStore, LiveEpisode, Policies, all_policies, ask, check_turn
from agents.turn import Policy, Turn, TurnRequest, is_served
from textgames.settings import check_whole

DEFAULT_CONCURRENCY = 64


def rollout(
    policies: Policies,
    tasks: Iterable[EpisodeTask | None],
    *,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    timeout: float | None = None,
    on_step: Callable[[EpisodeTask, Step], None] | None = None,
    answers: AnswerStore | None = None,
) -> Iterator[Episode]:
    """Play every task and yield its episode as soon as it ends, in no particular order.

    Results depend on the tasks and the policies alone, not on ``max_concurrency`` or on the order of anything: every
    decision has its own seed, ``(task.seed, *task.noise, round, player's index)``.

    Args:
        policies: one policy for all players, ``{player: policy}``, or several teams, one of which each task names. If
            all are synchronous, live episodes advance in lock step (one ``act`` per policy and round); one whose model
            is a server (:func:`~agents.turn.is_served`) is asked request by request, each episode at its own pace.
        tasks: consumed lazily, one at a time. ``None`` is none for now: the next one is asked for when an episode ends,
            or beside servers when a step is played.
        max_concurrency: the most episodes in flight (one with a policy that is ``sequential``, as a person is). The
            next task begins when the consumer comes back for more, so what was yielded is safe on disk by then.
        timeout: seconds for the whole loop; then everything in flight is cancelled and ``TimeoutError`` raised.
        on_step: called after every step, in the thread that plays; for live displays and for counting costs.
        answers: keeps the answers of players behind servers.

    A provider's error ends its episode, which is yielded with :attr:`Episode.error`. A ValueError is raised for a
    player without a policy, an unknown environment or setting. Other errors of a policy are raised, and what is in
    flight is cancelled. Closing the iterator (also by Ctrl-C in the consumer) cancels it likewise; when it returns,
    nothing is running.
    """
    check_whole("max_concurrency", max_concurrency, 1, None)
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, or None, got {timeout!r}")
    players = all_policies(policies)
    for policy in players:
        if not isinstance(policy, Policy):
            raise TypeError(f"a policy has a name and act(), got {type(policy).__name__}; see agents.load_agent")
    if any(getattr(policy, "sequential", False) for policy in players):
        max_concurrency = 1
    deadline = None if timeout is None else monotonic() + timeout
    if any(map(is_served, players)):
        return concurrent_rollout(policies, iter(tasks), max_concurrency, deadline, on_step, answers)
    return _in_lock_step(policies, iter(tasks), max_concurrency, deadline, on_step)


def _in_lock_step(
    policies: Policies,
    tasks: Iterator[EpisodeTask | None],
    max_concurrency: int,
    deadline: float | None,
    on_step: Callable[[EpisodeTask, Step], None] | None,
) -> Iterator[Episode]:
    """Advance all live episodes by one round at a time, so that a local model sees the largest possible batches."""
    live: list[LiveEpisode] = []
    while True:
        while len(live) < max_concurrency and (task := next(tasks, None)) is not None:
            live.append(LiveEpisode(task, policies))
        if not live:
            return
        if deadline is not None and monotonic() > deadline:
            raise TimeoutError(f"out of time with {len(live)} episodes in flight, which were cancelled")
        requests = [episode.requests() for episode in live]
        asked: dict[int, tuple[Policy, list[tuple[int, str, TurnRequest]]]] = {}
        for row, episode in enumerate(live):
            for player, request in requests[row].items():
                policy = episode.policies[player]
                asked.setdefault(id(policy), (policy, []))[1].append((row, player, request))
        answers: dict[tuple[int, str], Turn] = {}
        for policy, questions in asked.values():
            started = process_time()
            turns = ask(policy, [request for _, _, request in questions])
            share = (process_time() - started) / len(questions)
            for row, player, _ in questions:
                live[row].cpu_seconds[player] += share
            answers.update({(row, player): turn for (row, player, _), turn in zip(questions, turns, strict=True)})
        for row, episode in enumerate(live):
            # in the players' order, and not in that of the policies, which depends on what else is live
            for step in episode.play({player: answers[row, player] for player in requests[row]}):
                if on_step is not None:
                    on_step(episode.task, step)
        over = [episode for episode in live if episode.over]
        live = [episode for episode in live if not episode.over]
        for episode in over:
            yield episode.finish()


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
