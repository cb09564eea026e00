"""What value iteration and minimax share: a yardstick that solves all that can be reached from a state."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from textgames.solving.state_space import BackwardInduction, StateSpace, decisions_in, joint_actions
from textgames.tsmg import TSMG, Action, Outcome, Player
from textgames.yardsticks import Yardstick

MAX_STATES = 2_000_000  # the most states within reach, unless a solver is told another number
KEPT_STATES = 50_000  # so many states are kept, and more only if they are within reach of one


class ExactSolver(Yardstick):
    """Exact values of a small game, from what may come of its rounds.

    What was solved is kept, as the states of an episode are all within reach of its first one. ``canonical`` maps
    states that are worth the same, such as a board and its mirror image, to one of them, so that fewer are solved.
    """

    _game: TSMG[Any]

    def __init__(
        self, game: TSMG[Any], *, canonical: Callable[[Any], Hashable] | None = None, max_states: int = MAX_STATES
    ) -> None:
        self._game, self._canonical, self._max_states = game, canonical, max_states
        self._solved: dict[Hashable, BackwardInduction] = {}  # by each of its states

    def _mover(self, state: Any) -> Player:
        movers = self._game.to_move(state)
        if len(movers) != 1:
            who, name = " and ".join(movers) or "nobody", type(self._game).__name__
            raise ValueError(f"{self.method} is for players who take turns, in {name} {who} moves")
        return movers[0]

    def _outcomes(self, state: Any, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[Any]]:
        """Return what may come of a round; the first player's rewards are what the values are of."""
        return self._game.outcomes(state, joint_action)

    def values(self, state: Any, steps_left: int | None, player: Player) -> dict[Action, float]:
        """Return ``Q_h(s, a)`` of every legal action of ``player``, who is to move.

        A ValueError if another player is to move, no step is left, the game is too large, or without a limit doesn't
        come to an end.
        """
        if player != (mover := self._mover(state)):
            raise ValueError(f"{mover} is to move, so the actions of {player} have no values here")
        if steps_left is not None and steps_left < 1:
            raise ValueError(f"steps_left must be at least 1, or None for no limit, got {steps_left}")
        after_it = None if steps_left is None else steps_left - 1
        solved, first = self._find(state, steps_left), self._game.players[0]
        found = {}
        for joint_action in joint_actions(decisions_in(self._game, state)):
            paid = ahead = 0.0  # apart, so that rounding makes no difference to the value of the state
            for chance, after, rewards, over in self._outcomes(state, joint_action):
                paid += chance * rewards[first]
                ahead += 0.0 if over else chance * solved.value(self._same(after), after_it)
            expected = paid + ahead
            found[joint_action[mover]] = (expected if mover == first else -expected) + 0.0  # not -0.0, when printed
        return found

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        if player not in self._game.players:
            raise ValueError(f"the game's players are {', '.join(self._game.players)}, got {player!r}")
        if steps_left is not None and steps_left < 0:
            raise ValueError(f"steps_left must be at least 0, or None for no limit, got {steps_left}")
        value = self._find(state, steps_left).value(self._same(state), steps_left)
        return value if player == self._game.players[0] else 0.0 - value

    def _same(self, state: Any) -> Hashable:
        return state if self._canonical is None else self._canonical(state)

    def _find(self, state: Any, steps_left: int | None) -> BackwardInduction:
        start = self._same(state)
        solved = self._solved.get(start)
        if solved is None or not solved.covers(start, steps_left):
            space = StateSpace.of(self._game, [start], steps_left, self._max_states, outcomes=self._merged_outcomes)
            solved = BackwardInduction(space, self._game.players[0])
            if len(self._solved) + len(space.numbers) > min(self._max_states, KEPT_STATES):
                self._solved.clear()
            self._solved |= dict.fromkeys(space.numbers, solved)
        return solved

    def _merged_outcomes(self, state: Any, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[Any]]:
        if len(joint_action) != 1:
            self._mover(state)  # says what is wrong
        found = self._outcomes(state, joint_action)
        same = self._canonical
        return found if same is None else [(chance, same(after), paid, over) for chance, after, paid, over in found]
