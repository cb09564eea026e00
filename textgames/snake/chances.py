"""The chances of a round of Snake: where the built-in opponents move, and where eaten food reappears.

Both are drawn by :class:`textgames.snake.rules.SnakeRules`; here they are listed. An opponent takes each of its options
with equal chances, independently of the others. The missing food takes empty cells one after another, each uniformly,
so that all ways to put it on the empty cells are equally likely.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, NamedTuple

from textgames.snake.rules import ACTIONS, Cells, SnakeConfig, SnakeRules, SnakeState, move_table
from textgames.tsmg import Outcome

if TYPE_CHECKING:
    import numpy as np

MOST_OUTCOMES = 50_000
"""The most outcomes that are listed for one round: some 0.1 seconds."""


class SettledRound(NamedTuple):
    """What may have come of a round when everybody has moved, before eaten food reappears."""

    chance: float
    state: SnakeState  # lacks the food that was eaten
    rewards: dict[str, float]
    over: bool


class _GivenMoves(SnakeRules):
    """The rules of a round without chance: opponents are players like any other, and eaten food stays away."""

    def __init__(self, config: SnakeConfig) -> None:
        super().__init__(replace(config, num_players=config.num_snakes, num_opponents=0))

    def _with_missing_food(self, state: SnakeState, rng: "np.random.Generator | None") -> SnakeState:
        return state


class SnakeChances:
    """The exact distribution of ``transition`` for one :class:`SnakeConfig`."""

    def __init__(self, rules: SnakeRules) -> None:
        self._rules = rules
        self._config = config = rules.config
        self._given = _GivenMoves(config)
        self._moves = move_table(config.width, config.height)
        self._opponents = self._given.players[config.num_players :]

    @property
    def offered(self) -> bool:
        """Whether any round has few enough outcomes: so it is with two snakes on 100 cells, or three on 14.

        In a round every snake may eat, and every opponent has four options at most. Only a board that was full before
        may lack more food than that.
        """
        config = self._config
        most: int = config.num_cells ** min(config.num_snakes, config.num_food) * len(ACTIONS) ** config.num_opponents
        return most <= MOST_OUTCOMES

    def outcomes(self, state: SnakeState, joint_action: Mapping[str, str]) -> list[Outcome[SnakeState]]:
        """Everything that may come of a round.

        Raises:
            ValueError: as ``transition``.
            NotImplementedError: there are more than :data:`MOST_OUTCOMES`.
        """
        rounds = self.settled(state, joint_action)
        counts = [self._count(settled.state) for settled in rounds]
        if sum(counts) > MOST_OUTCOMES:
            raise NotImplementedError(
                f"this round of Snake has {sum(counts):,} outcomes, and at most {MOST_OUTCOMES:,} are listed"
            )
        return [
            (settled.chance / count, after, settled.rewards, settled.over)
            for settled, count in zip(rounds, counts, strict=True)
            for after in self._refilled(settled.state)
        ]

    def settled(self, state: SnakeState, joint_action: Mapping[str, str]) -> list[SettledRound]:
        """What may come of everybody's moves, one for every combination of the opponents' options.

        Raises:
            ValueError: as ``transition``.
        """
        config = self._config
        options = [self._options(snake) for snake in state.snakes[config.num_players :]]
        found = []
        for drawn in product(*options):
            everybody = {**joint_action, **dict(zip(self._opponents, drawn, strict=True))}
            after, rewards, _ = self._given.transition(state, everybody, None)  # type: ignore[arg-type]  # draws nothing
            paid = {player: rewards[player] for player in self._rules.players}
            over = not any(after.snakes[: config.num_players])
            found.append(SettledRound(1.0, after, paid, over))
        return [settled._replace(chance=1 / len(found)) for settled in found]

    def _options(self, snake: Cells) -> tuple[str, ...]:
        """The equally likely actions of an opponent; a dead one has an action that nobody looks at."""
        if not snake:
            return ACTIONS[:1]
        targets = self._rules.opponent_targets(snake)
        return tuple(action for action in ACTIONS if self._moves[action][snake[0]] in targets)

    def returning(self, state: SnakeState) -> tuple[int, int, int]:
        """How many apples, bananas and fires reappear: what is missing, in this order, while there are empty cells."""
        config, empty = self._config, len(self.empty_cells(state))
        numbers = []
        for cells, number in zip(state[1:], (config.num_apples, config.num_bananas, config.num_fires), strict=True):
            numbers.append(min(number - len(cells), empty))
            empty -= numbers[-1]
        apples, bananas, fires = numbers
        return apples, bananas, fires

    def empty_cells(self, state: SnakeState) -> list[int]:
        """The cells on which nothing is, ascending."""
        taken = set(state.apples).union(state.bananas, state.fires, *state.snakes)
        return [cell for cell in range(self._config.num_cells) if cell not in taken]

    def _count(self, state: SnakeState) -> int:
        empty, count = len(self.empty_cells(state)), 1
        for number in self.returning(state):
            count *= comb(empty, number)
            empty -= number
        return count

    def _refilled(self, state: SnakeState) -> Iterator[SnakeState]:
        """The board with its missing food, in all of the equally likely ways."""
        numbers = self.returning(state)
        if not any(numbers):
            yield state
            return
        snakes, *foods = state
        for placed in _placements(self.empty_cells(state), numbers):
            yield SnakeState(
                snakes, *(tuple(sorted((*old, *new))) if new else old for old, new in zip(foods, placed, strict=True))
            )


def _placements(cells: list[int], numbers: tuple[int, ...]) -> Iterator[tuple[Cells, ...]]:
    """All ways to put so many things of each kind on different cells."""
    if not numbers:
        yield ()
        return
    for chosen in combinations(cells, numbers[0]):
        rest = [cell for cell in cells if cell not in chosen] if chosen and any(numbers[1:]) else cells
        for others in _placements(rest, numbers[1:]):
            yield chosen, *others
