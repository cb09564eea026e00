"""What value iteration and minimax share: a yardstick that solves all that can be reached from a state."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from textgames.solving.reachable import Branch, Expanded, Play, Reachable
from textgames.tsmg import TSMG, Action, Outcome, Player
from textgames.yardsticks import Yardstick

MAX_STATES = 2_000_000
"""The most states that a solver keeps, unless it is told another number."""


class ExactSolver(Yardstick):
    """Exact values of a small game, from what may come of its rounds.

    What was solved is kept, as the states of an episode are all within reach of its first one; what was asked about
    longest ago is given up when there are too many states.

    Args:
        game: the game.
        canonical: maps states that are worth the same, such as a board and its mirror image, to one of them, so that
            fewer are solved; every state for itself when not given.
        max_states: the most states that are kept.
    """

    def __init__(
        self, game: TSMG[Any], *, canonical: Callable[[Any], Hashable] | None = None, max_states: int = MAX_STATES
    ) -> None:
        self._game, self._canonical, self._max_states = game, canonical, max_states
        self._solved: list[Reachable] = []  # what was asked about last comes last

    @abstractmethod
    def _mover(self, state: Any) -> tuple[Player, bool]:
        """Who acts in a state, and whether it wants the return to be large."""

    def _outcomes(self, state: Any, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[Any]]:
        """What may come of a round."""
        return self._game.outcomes(state, joint_action)

    @abstractmethod
    def _reward(self, rewards: Mapping[Player, float]) -> float:
        """The reward whose sum the values are: that of the first player."""

    def values(self, state: Any, steps_left: int | None, player: Player) -> dict[Action, float]:
        """``Q_h(s, a)`` of every legal action of ``player``, who is to move.

        Raises:
            ValueError: somebody else is to move; no step is left; or the game is too large, or without a limit doesn't
                come to an end.
        """
        mover, maximises = self._mover(state)
        if player != mover:
            raise ValueError(f"{mover} is to move, so the actions of {player} have no values here")
        if steps_left is not None and steps_left < 1:
            raise ValueError(f"steps_left must be at least 1, or None for no limit, got {steps_left}")
        after_it = None if steps_left is None else steps_left - 1
        solved, sign = self._find(state, steps_left), 1.0 if maximises else -1.0
        found = {}
        for action, branch in zip(self._game.legal_actions(state, mover), self._branches(state, mover), strict=True):
            expected = 0.0
            for chance, after, reward, over in branch:
                ahead = 0.0 if over else solved.value(after, after_it, "best")
                expected += chance * (reward + ahead)
            found[action] = sign * expected + 0.0  # not -0.0, which would be printed
        return found

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        return self._value(state, steps_left, player, "best")

    def uniform_value(self, state: Any, steps_left: int | None, player: Player) -> float:
        """The exact expected return where everybody picks every legal action with equal chances."""
        return self._value(state, steps_left, player, "uniform")

    def _value(self, state: Any, steps_left: int | None, player: Player, play: Play) -> float:
        if player not in self._game.players:
            raise ValueError(f"the game's players are {', '.join(self._game.players)}, got {player!r}")
        if steps_left is not None and steps_left < 0:
            raise ValueError(f"steps_left must be at least 0, or None for no limit, got {steps_left}")
        value = self._find(state, steps_left).value(self._same(state), steps_left, play)
        return value if player == self._game.players[0] else 0.0 - value

    def _same(self, state: Any) -> Hashable:
        return state if self._canonical is None else self._canonical(state)

    def _find(self, state: Any, steps_left: int | None) -> Reachable:
        root = self._same(state)
        for solved in reversed(self._solved):  # mostly it is the one that was asked last
            if solved.covers(root, steps_left):
                if solved is not self._solved[-1]:
                    self._solved.remove(solved)
                    self._solved.append(solved)
                return solved
        solved = Reachable(root, self._expand, steps_left, self._max_states)
        self._solved.append(solved)
        while sum(len(kept.numbers) for kept in self._solved) > self._max_states and len(self._solved) > 1:
            del self._solved[0]
        return solved

    def _expand(self, state: Hashable) -> Expanded:
        mover, maximises = self._mover(state)
        branches = self._branches(state, mover)
        if not branches:
            raise ValueError(f"{type(self._game).__name__} lists no actions of {mover}, so it can't be solved exactly")
        return Expanded(maximises, branches)

    def _branches(self, state: Any, mover: Player) -> list[Branch]:
        same, reward = self._same, self._reward
        return [
            [
                (chance, same(after), reward(rewards), over)
                for chance, after, rewards, over in self._outcomes(state, {mover: action})
            ]
            for action in self._game.legal_actions(state, mover)
        ]
