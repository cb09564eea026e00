"""Fixed distributions over actions, and the exact return of a player that draws from one whatever it reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textgames.solving.state_space import BackwardInduction, StateSpace
from textgames.tsmg import TSMG, Action, Outcome, Player
from textgames.yardsticks import FixedPolicy, find_yardstick

MAX_STATES = 10_000  # the most states within reach of one start that are solved: a second, and 20 megabytes


class BlindPlay(NamedTuple):
    """The best blind player of a game that was found, and what it gets."""

    policy: FixedPolicy  # its distribution over actions; ``{}`` for equal chances of all legal ones
    text: str  # the same for people: ``"down 0.5, right 0.5"``, ``"uniform"``, ``"always hit"``
    value: float  # its mean return, on other starts than those that it was chosen on
    standard_error: float  # of ``value``, over these starts or episodes
    episodes: int  # how many starts, or episodes if it was played
    exact: bool  # whether the return from each start is computed and not played


def chances_of(policy: FixedPolicy, legal: Sequence[Action]) -> list[float]:
    """Return a fixed policy's part on the legal actions, made to sum to 1; equal chances if it names none of them."""
    weights = [policy.get(action, 0.0) for action in legal]
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else [1 / len(legal)] * len(legal)


def policy_text(policy: FixedPolicy) -> str:
    """Return a fixed policy for people, the most frequent action first."""
    if not policy:
        return "uniform"
    if len(policy) == 1:
        return f"always {next(iter(policy))}"
    ordered = sorted(policy.items(), key=lambda item: -item[1])
    return ", ".join(f"{action} {share:.3g}" for action, share in ordered)


def blind_value(
    game: TSMG[Any], state: Any, steps_left: int | None, player: Player, policy: FixedPolicy
) -> float | None:
    """Return the exact expected return of a player that plays a fixed distribution over actions from a state on.

    ``None`` if it can't be computed: several players, unknown chances, actions that can't be listed, or more than
    :data:`MAX_STATES` states within reach.
    """
    evaluate = blind_evaluator(game, state, steps_left, player)
    return None if evaluate is None else float(evaluate([policy])[0])


Evaluate = Callable[[Sequence[FixedPolicy]], NDArray[np.float64]]
"""``policies -> the value of each``, which takes little longer for several than for one."""


def blind_evaluator(game: TSMG[Any], state: Any, steps_left: int | None, player: Player) -> Evaluate | None:
    """Return what computes :func:`blind_value` of any policies from one state; ``None`` if that returns ``None``."""
    if len(game.players) != 1:
        return None
    yardstick = find_yardstick(game)
    if yardstick is not None and yardstick.blind_value(state, steps_left, player, {}) is not None:
        return lambda policies: np.array([yardstick.blind_value(state, steps_left, player, one) for one in policies])
    try:
        return BlindGraph(game, state, steps_left, player)
    except (ValueError, NotImplementedError):
        return None


class BlindGraph:
    """All that may happen from one start, with the names of the actions; every fixed policy is evaluated on it.

    Raises:
        ValueError: too many states, actions that can't be listed, or a round with too many outcomes.
        NotImplementedError: the game's chances aren't known.
    """

    def __init__(self, game: TSMG[Any], start: Any, steps_left: int | None, player: Player) -> None:
        outcomes_left = 20 * MAX_STATES

        def outcomes(state: Any, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[Any]]:
            nonlocal outcomes_left
            found = game.outcomes(state, joint_action)
            outcomes_left -= len(found)
            if outcomes_left < 0:
                raise ValueError("a round has too many outcomes")
            return found

        space = StateSpace.of(game, [start], steps_left, MAX_STATES, outcomes=outcomes)
        self._solved, self._steps_left = BackwardInduction(space, player), steps_left
        space.numbers.clear()  # only the start is asked about: many graphs are kept, and the states are most

    @property
    def work(self) -> int:
        """States times rounds: what evaluating a policy takes time in proportion to."""
        return len(self._solved.space.decisions) * (self._steps_left or 1)

    def __call__(self, policies: Sequence[FixedPolicy]) -> NDArray[np.float64]:
        """Return the value of the start under each policy, shape (policies,)."""
        known: dict[tuple[Action, ...], NDArray[np.float64]] = {}  # most states have the same legal actions
        states = [mover.actions for (mover,) in self._solved.space.decisions]
        for legal in states:
            if legal not in known:
                known[legal] = np.array([chances_of(policy, legal) for policy in policies]).T
        chances = np.concatenate([np.empty((0, len(policies))), *[known[legal] for legal in states]])
        return self._solved.fixed_values(self._steps_left, chances)
