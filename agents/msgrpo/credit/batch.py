"""The plain data of a method of credit: :class:`Batch` of :class:`Trajectory` -> :class:`Credit`."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agents.episode import EpisodeTask
from agents.msgrpo.errors import ConfigError
from agents.turn import Allowed, Policy

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NEEDS = ("old_logprobs", "entropies", "values", "reward_model", "rollouts", "segments")
"""The words of ``needs``, for what a trajectory doesn't always have."""

Step = tuple[int, int]
"""Step t of trajectory i of a batch, as ``(i, t)``."""

StepCredit = Floats | Sequence[Floats]
"""Advantages of one trajectory: (T,) one per step, or T arrays (K_t,) with one per response token."""

Heads = Mapping[str, Literal["step", "token"]]
"""The values of a critic, ``{name: where it is read}``: one for each step, or one before each token."""


class TokenRow(NamedTuple):
    """One step as tokens, and its part in an update. The response's tokens are scored; neither part is empty.

    Attributes:
        allowed: which tokens might stand at each of the response's, if not all might: probabilities and entropies are
            renormalised over them.
        logprobs: of the response's tokens, as sampled; ``None`` if the engine doesn't report them.
        advantage: of all its tokens, or one for each response token.
        draw: which draw of an episode the step belongs to; an episode drawn twice is in the update twice.
        trajectory: the number of the trajectory in the batch that the credit was assigned to.
        scale: the factor of the draw and the filter, which is in the advantages already, for surrogates without them;
            in an imitation the factor of its loss.
    """

    prompt: tuple[int, ...]
    response: tuple[int, ...]
    allowed: Allowed | None = None
    logprobs: tuple[float, ...] | None = None
    advantage: float | tuple[float, ...] = 0.0
    draw: int = 0
    step: int = 0
    trajectory: int = 0
    scale: float = 1.0

    def token_advantages(self) -> Sequence[float]:
        each = self.advantage
        return each if isinstance(each, tuple) else (each,) * len(self.response)


class Segment(NamedTuple):
    """A named part of a response by its tokens, tags included, and the ``text`` between its tags."""

    name: str
    start: int
    stop: int
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One player's part of one episode: what the papers call an episode. It has T steps, the player's decisions.

    Attributes:
        group: trajectories with the same label started from the same state, as the same player.
        rewards: (T,) the format penalty included; they sum to the return.
        earned: (T,) the game's own rewards, without format penalties, if a reward rule has changed ``rewards``.
        states: T states of the game, each as it was before the step.
        actions: T names of the actions that were executed.
        valid: (T,) whether the response named a legal action.
        steps_left: T numbers of rounds until the episode would be cut off, this one included; ``None`` without a limit.
        terminated: whether the episode ended by the rules of the game, and not by the step limit.
        cut_off: (T,) whether the response ended at the token limit.
        prompt_ids: T tuples of token ids.
        response_ids: T tuples of K_t token ids, the end-of-sequence token included if it was sampled.
        old_logprobs: T arrays (K_t,) in nats of the policy that sampled, temperature applied: the sampler's, or
            recomputed by the learner if a method needs ``old_logprobs`` and the sampler doesn't report them.
        entropies: (T,) mean entropy in nats of the tokens of each response; for methods that need ``entropies``.
        values: (T,) the critic's value of each step's prompt; for methods that need ``values``.
        head_values: the critic's values, by head; "step" heads (T,), "token" heads T arrays (K_t,).
        log_ratios: (T,) how much likelier than the policy a reward model takes each response to be, in nats; for
            methods that need ``reward_model``.
        segments: T tuples of :class:`Segment`; for methods that need ``segments``.
        task: the episode that was played, from which the game can be made again.
        rounds: (T,) the round of the episode in which each step was taken, from 0.
        end_state: the game's state after the episode's last round.
        bought: T numbers of answers that a second player gave, in training inside another player; ``None`` without one.
        hinted: whether the prompts had hints that a player wouldn't see otherwise.
        allowed: what might stand at the tokens of each of T responses; ``None`` if nothing was constrained.
        tree: which tree of its group the episode belongs to; ``None`` if episodes share no steps.
        nodes: T labels of steps: those that trajectories share have one label, and were played once. Empty likewise.
    """

    group: Hashable
    rewards: Floats
    states: tuple[Any, ...] = ()
    observations: tuple[str, ...] = ()
    responses: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    valid: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    steps_left: tuple[int | None, ...] = ()
    terminated: bool = True
    success: bool = False
    player: str = "player_0"
    cut_off: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    prompt_ids: tuple[tuple[int, ...], ...] = ()
    response_ids: tuple[tuple[int, ...], ...] = ()
    old_logprobs: tuple[Floats, ...] | None = None
    entropies: Floats | None = None
    values: Floats | None = None
    head_values: Mapping[str, StepCredit] = field(default_factory=dict)
    log_ratios: Floats | None = None
    earned: Floats | None = None
    segments: tuple[tuple[Segment, ...], ...] | None = None
    task: EpisodeTask | None = None
    rounds: tuple[int, ...] = ()
    end_state: Any = None
    bought: tuple[int | None, ...] = ()
    hinted: bool = False
    allowed: tuple[Allowed | None, ...] | None = None
    tree: Hashable = None
    nodes: tuple[Hashable, ...] = ()

    def __len__(self) -> int:
        return len(self.rewards)

    def returned(self, discount: float = 1.0) -> float:
        """Return the episode's return, ``R_i = sum_t discount^t r_it``."""
        return episode_return(self.rewards.tolist(), discount)

    def returns_to_go(self, discount: float = 1.0) -> Floats:
        """Return (T,) ``G_it = sum_{u >= t} discount^(u - t) r_iu``."""
        return returns_to_go(self.rewards, discount)

    def surprise(self, t: int) -> float:
        """Return ``-mean_k log pi`` of the tokens of step t, in nats: an estimate of the policy's entropy there."""
        if self.old_logprobs is None:
            raise ValueError("the entropy of a step needs old_logprobs, and this trajectory has none")
        return -float(self.old_logprobs[t].mean())

    @property
    def tokens(self) -> int:
        return sum(map(len, self.response_ids))

    @property
    def rows(self) -> list[TokenRow]:
        """The prompts and the responses of all T steps as tokens."""
        allowed = self.allowed or (None,) * len(self.prompt_ids)
        return [TokenRow(*each) for each in zip(self.prompt_ids, self.response_ids, allowed, strict=True)]

    @property
    def begins_a_game(self) -> bool:
        """Whether the episode began in an initial state, as far as is known."""
        return self.task is None or self.task.start is None

    @property
    def seat(self) -> tuple[str, str]:
        """The scenario's name, empty if it is unknown, and the player."""
        return ("" if self.task is None else self.task.scenario, self.player)


What = Callable[[Trajectory, int], Hashable]
"""``trajectory, t -> a label of the step``; see :meth:`Batch.visits`."""


class Start(NamedTuple):
    """A place in an episode from which fresh rollouts begin: a state, and the rounds played before it."""

    task: EpisodeTask
    state: Any
    elapsed_steps: int
    player: str


class FreshRollouts(Protocol):
    """Plays on from visited states with the current policy, for methods that need ``rollouts``."""

    @property
    def policy(self) -> Policy:
        """The policy that plays the fresh rollouts."""

    @property
    def tokens(self) -> int:
        """Response tokens that fresh rollouts have spent so far in this iteration."""

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        """Return (S, count) undiscounted returns of each start's player from there on, in independent episodes."""


@dataclass(frozen=True)
class Batch:
    """The trajectories of one iteration, which is the ``iteration``-th from 0.

    ``rollouts`` plays on from visited states; ``played`` is all that was played, if a sampler has left some of it out.
    """

    trajectories: Sequence[Trajectory]
    rollouts: FreshRollouts | None = None
    iteration: int = 0
    played: Sequence[Trajectory] | None = None

    def __len__(self) -> int:
        return len(self.trajectories)

    @cached_property
    def groups(self) -> dict[Hashable, list[int]]:
        """``{label: indices of its trajectories}``, in the order in which the labels first appear."""
        return places_of(trajectory.group for trajectory in self.trajectories)

    def returns(self, discount: float = 1.0) -> Floats:
        return np.array([trajectory.returned(discount) for trajectory in self.trajectories], dtype=np.float64)

    def returns_to_go(self, discount: float = 1.0) -> list[Floats]:
        return [trajectory.returns_to_go(discount) for trajectory in self.trajectories]

    def visits(self, what: What | None = None) -> dict[tuple[Hashable, Any], list[Step]]:
        """Return ``{(group, state): [(i, t), ...]}``: in which steps of a group's trajectories each state was visited.

        ``what(trajectory, t)`` replaces ``trajectory.states[t]``.
        """
        found: dict[tuple[Hashable, Any], list[Step]] = {}
        for i, trajectory in enumerate(self.trajectories):
            for t in range(len(trajectory)):
                seen = trajectory.states[t] if what is None else what(trajectory, t)
                found.setdefault((trajectory.group, seen), []).append((i, t))
        return found

    def only(self, indices: Sequence[int]) -> "Batch":
        return Batch([self.trajectories[index] for index in indices], self.rollouts, self.iteration)


class Preferences(NamedTuple):
    """The pairs ``(better, worse)`` of trajectories of a batch, by their places, for a reward model to learn.

    A log-ratio of probabilities times ``beta`` is a reward.
    """

    pairs: Sequence[tuple[int, int]]
    beta: float


class Credit(NamedTuple):
    """The result of a method for a batch.

    Attributes:
        draw_weight: (N,) at least 0: draw rules that weigh episodes (AAW) draw them by it.
        advantages: N entries, each (T_i,) with one advantage per step, which all of its response tokens get, or T_i
            arrays (K_t,) with one per response token.
        value_targets: those of the critic's heads, ``{head: N entries as in advantages}``; if values are needed.
        metrics: numbers for the log.
        preferences: the reward model's lesson; for methods that need ``reward_model``.
    """

    draw_weight: Floats
    advantages: Sequence[StepCredit]
    value_targets: Mapping[str, Sequence[StepCredit]] | None = None
    metrics: Mapping[str, float] = {}
    preferences: Preferences | None = None

    @classmethod
    def of(cls, advantages: Sequence[StepCredit], **others: Any) -> "Credit":
        """Return credit with the mean of ``|A|`` over an episode's steps (or over all of its tokens) as draw weight."""
        flat = map(flattened, advantages)
        return cls(np.array([np.abs(each).mean() if len(each) else 0.0 for each in flat]), advantages, **others)

    @classmethod
    def per_episode(cls, batch: Batch, advantages: Floats) -> "Credit":
        """Return credit that gives all steps of an episode the same advantage, from (N,) advantages."""
        spread = [np.full(len(t), a) for t, a in zip(batch.trajectories, advantages.tolist(), strict=True)]
        return cls(np.abs(advantages), spread)


def checked_credit(name: str, credit: Any, batch: Batch) -> Credit:
    """Return the credit that a method, which may be anybody's own, has assigned to a batch, or refuse its form."""

    def refuse(what: str) -> ConfigError:
        return ConfigError(f"credit = {name!r}: assign returned {what}; see agents.msgrpo.credit.Credit")

    if not isinstance(credit, Credit):
        raise refuse(f"a {type(credit).__name__}, and a Credit is accepted, such as Credit.of(advantages)")
    advantages, weights = len(credit.advantages), len(credit.draw_weight)
    if not advantages == weights == len(batch):
        raise refuse(f"{advantages} advantages and {weights} draw weights for {len(batch)} episodes")
    for number, (own, trajectory) in enumerate(zip(credit.advantages, batch.trajectories, strict=True)):
        if len(own) != len(trajectory):
            raise refuse(f"{len(own)} advantages for the {len(trajectory)} steps of episode {number}")
        if not isinstance(own, np.ndarray) and not all(isinstance(step, np.ndarray) for step in own):
            raise refuse(f"{own!r} for episode {number}, and NumPy arrays are accepted")
    return credit


def episode_return(rewards: Sequence[float], discount: float = 1.0) -> float:
    """Return ``R_i = sum_t discount^t r_{i,t}``; the paper's is undiscounted. Rewards include format penalties."""
    if discount == 1.0:
        return float(sum(rewards))
    return float(sum(reward * discount**t for t, reward in enumerate(rewards)))


def returns_to_go(rewards: Floats, discount: float = 1.0) -> Floats:
    """Return (T,) ``G_t = sum_{u >= t} discount^(u - t) r_u`` from (T,) rewards."""
    result = np.empty(len(rewards))
    total = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        total = float(rewards[t]) + discount * total
        result[t] = total
    return result


def flattened(advantages: StepCredit) -> Floats:
    """Return all advantages of a trajectory in one array."""
    return advantages if isinstance(advantages, np.ndarray) else np.concatenate([np.asarray(a) for a in advantages])


def places_of(labels: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    """Return ``{label: the places where it stands}``, in the order in which labels first appear."""
    places: dict[Hashable, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    return places
