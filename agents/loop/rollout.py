"""The loop: policies and episode tasks in, episodes out, as they finish.

``tasks -> [reset -> observations -> policy -> responses -> step]* -> Episode``. The benchmark's runner and the
fine-tuner's rollouts are both this one function.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic, process_time

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.concurrent import concurrent_rollout
from agents.loop.live import AnswerStore, LiveEpisode, Policies, all_policies, ask
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
