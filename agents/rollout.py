"""The loop: policies and episode tasks in, episodes out, as they finish.

``tasks -> [reset -> observations -> policy -> responses -> step]* -> Episode``. The benchmark's runner and the
fine-tuner's rollouts are both this one function.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.episode import Episode, Step
from agents.turn import Policy

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
    def of(cls, scenario: "Scenario | str", seed: int, *, layout_seed: int | None = None) -> "EpisodeTask":
        """The episode of ``scenario`` (its name or the object) with this seed."""
        raise NotImplementedError


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
        max_concurrency: the most episodes in flight. An episode's place is given to the next task only when the
            consumer has come back for more, so what was yielded is safe on disk before another one starts.
        timeout: seconds for the whole loop; then everything in flight is cancelled and ``TimeoutError`` raised.
        on_step: called after every step, in the thread that plays; for live displays and for counting costs.

    Yields:
        Complete episodes, and incomplete ones whose :attr:`Episode.error` says which provider's error ended them.

    Closing the iterator (also by leaving a ``for`` loop with Ctrl-C) cancels what is in flight.
    """
    raise NotImplementedError
