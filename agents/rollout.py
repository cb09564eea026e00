"""The loop: policies and episode tasks in, episodes out, as they finish.

``tasks -> [reset -> observations -> policy -> responses -> step]* -> Episode``. The benchmark's runner and the
fine-tuner's rollouts are both this one function.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agents._concurrent import concurrent_rollout
from agents._live import EnvironmentPool, LiveEpisode
from agents._words import did_you_mean
from agents.episode import Episode, Step
from agents.turn import AsyncPolicy, Policy, Turn, TurnRequest

if TYPE_CHECKING:
    from textgames.scenarios import Scenario

DEFAULT_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One episode to play: which game, from which seeds.

    Attributes:
        scenario: what results call it: a scenario's name or the environment id.
        env_id: the environment's id, ``"TextSnake-v0"``.
        kwargs: the environment's keyword arguments.
        seed: drives the layout (unless ``layout_seed`` is given), the transitions and the sampling noise.
        layout_seed: fixes the initial state alone: tasks that share it and differ in ``seed`` start from the same state
            and differ in transitions and in sampling noise (the groups of MS-GRPO).
        noise: more entropy for sampling alone, for repeated plays of one seed; the transitions stay the seed's.
    """

    scenario: str
    env_id: str
    seed: int
    layout_seed: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    noise: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        scenario: "Scenario | str",
        seed: int,
        *,
        layout_seed: int | None = None,
        noise: tuple[int, ...] = (),
        **settings: Any,
    ) -> "EpisodeTask":
        """The episode of a scenario (its name or the object) or of a bare environment id, with this seed.

        Args:
            settings: environment settings that override the scenario's, ``format_penalty=1.0``.

        Raises:
            ValueError: neither a scenario nor a registered id.
        """
        import textgames

        if isinstance(scenario, str) and scenario in textgames.SCENARIOS:
            scenario = textgames.SCENARIOS[scenario]
        if isinstance(scenario, str):
            if ":" not in scenario and scenario not in textgames.registered_ids():
                known = (*textgames.SCENARIOS, *textgames.registered_ids())
                raise ValueError(
                    f"unknown scenario {scenario!r}{did_you_mean(scenario, known)}; there are {', '.join(known)}"
                )
            return cls(scenario, scenario, seed, layout_seed, settings, noise)
        kwargs = {**scenario.kwargs, "max_steps": scenario.horizon, **settings}
        return cls(scenario.name, scenario.env_id, seed, layout_seed, kwargs, noise)


def rollout(
    policies: Policy | Mapping[str, Policy],
    tasks: Iterable[EpisodeTask],
    *,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    timeout: float | None = None,
    on_step: Callable[[EpisodeTask, Step], None] | None = None,
) -> Iterator[Episode]:
    """Play every task and yield its episode as soon as it ends, in no particular order.

    Results depend on the tasks and the policies alone, not on ``max_concurrency`` or on the order of anything: every
    decision has its own seed, ``(task.seed, *task.noise, round, player's index)``.

    Args:
        policies: one policy for all players, or ``{player: policy}``. With policies that are all synchronous, live
            episodes advance in lock step (one ``act`` per policy and round, over all live episodes) and are refilled
            as they end; an :class:`~agents.turn.AsyncPolicy` is asked request by request, each episode at its own pace.
        tasks: consumed lazily, one at a time.
        max_concurrency: the most episodes in flight (one with a policy that is ``sequential``, as a person is). An
            episode's place is given to the next task only when the consumer has come back for more, so what was
            yielded is safe on disk before another one starts.
        timeout: seconds for the whole loop; then everything in flight is cancelled and ``TimeoutError`` raised.
        on_step: called after every step, in the thread that plays; for live displays and for counting costs.

    Yields:
        Complete episodes, and incomplete ones whose :attr:`Episode.error` says which provider's error ended them.

    Raises:
        ValueError: a player without a policy, an unknown environment or setting.

    Errors of a policy that aren't a provider's are the program's: they are raised, and what is in flight is cancelled.
    Closing the iterator (also by Ctrl-C in the consumer) cancels it likewise; when it returns, nothing is running.
    """
    if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 1:
        raise ValueError(f"max_concurrency is a whole number of at least 1, got {max_concurrency!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, or None, got {timeout!r}")
    by_player = policies if isinstance(policies, Mapping) else _Everyone(policies)
    if any(getattr(policy, "sequential", False) for policy in by_player.values()):
        max_concurrency = 1
    deadline = None if timeout is None else monotonic() + timeout
    served = any(isinstance(policy, AsyncPolicy) for policy in by_player.values())
    play = concurrent_rollout if served else _lock_step_rollout
    return play(by_player, iter(tasks), max_concurrency, deadline, on_step)


def _lock_step_rollout(
    policies: Mapping[str, Policy],
    tasks: Iterator[EpisodeTask],
    max_concurrency: int,
    deadline: float | None,
    on_step: Callable[[EpisodeTask, Step], None] | None,
) -> Iterator[Episode]:
    """All live episodes advance by one round at a time, so that a local model sees the largest possible batches."""
    pool = EnvironmentPool()
    live: list[LiveEpisode] = []
    while True:
        while len(live) < max_concurrency and (task := next(tasks, None)) is not None:
            live.append(LiveEpisode(task, policies, pool))
        if not live:
            return
        if deadline is not None and monotonic() > deadline:
            raise TimeoutError(f"out of time with {len(live)} episodes in flight, which were cancelled")
        for episode, turns in zip(live, _answers(live), strict=True):
            for step in episode.play(turns):
                if on_step is not None:
                    on_step(episode.task, step)
        over = [episode for episode in live if episode.over]
        live = [episode for episode in live if not episode.over]
        for episode in over:
            yield episode.finish()


def _answers(live: list[LiveEpisode]) -> list[dict[str, Turn]]:
    """Every episode's ``{player: turn}`` of one round; each policy is asked once, for everything it has to answer."""
    asked: dict[int, tuple[Policy, list[tuple[int, str, TurnRequest]]]] = {}
    for row, episode in enumerate(live):
        for player, request in episode.requests().items():
            policy = episode.policies[player]
            asked.setdefault(id(policy), (policy, []))[1].append((row, player, request))
    answers: list[dict[str, Turn]] = [{} for _ in live]
    for policy, questions in asked.values():
        turns = policy.act([request for _, _, request in questions])
        if len(turns) != len(questions):
            raise RuntimeError(f"{policy.name} returned {len(turns)} turns for {len(questions)} requests")
        for (row, player, _), turn in zip(questions, turns, strict=True):
            answers[row][player] = turn
    return answers


class _Everyone(Mapping[str, Policy]):
    """One policy for all players, whatever they are called."""

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"a policy has a name and act(), got {type(policy).__name__}; see agents.load_agent")
        self._policy = policy

    def __getitem__(self, player: str) -> Policy:
        return self._policy

    def __contains__(self, player: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(("*",))

    def __len__(self) -> int:
        return 1


class _CallableModule(ModuleType):
    """Lets ``from agents import rollout`` be called, although importing this module binds it to that name."""

    __call__ = staticmethod(rollout)


sys.modules[__name__].__class__ = _CallableModule
