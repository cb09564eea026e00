"""Snake as a text-mediated stochastic game: the rules with their exact chances, and the texts.

Chance draws where the built-in opponents move, each of its options with equal chances, and where eaten food reappears:
all ways to put the missing food on the empty cells are equally likely.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations, product
from math import comb, inf
from typing import NamedTuple

from textgames.snake.rules import ACTIONS, OFF_BOARD, Cells, SnakeRules, SnakeState
from textgames.snake.text import MARKS, SnakeText
from textgames.tsmg import JointAction, Outcome, Player, Rewards, SeenBoard

MOST_OUTCOMES = 50_000  # the most outcomes that are listed for one round: some 0.1 seconds


class SettledRound(NamedTuple):
    """A possible result of a round after all moves, before eaten food reappears."""

    chance: float
    state: SnakeState  # lacks the food that was eaten
    rewards: Rewards
    over: bool


class Snake(SnakeRules):
    """Simultaneous-move Snake with any number of players and built-in random opponents.

    Args:
        width: cells in a row.
        height: cells in a column.
        num_players: snakes that are controlled from outside: ``player_0``, ``player_1``, ...
        num_opponents: snakes that the game moves at random.
        num_apples: apples on the board at any time; ``num_bananas`` and ``num_fires`` likewise.
        apple_reward: reward for moving onto an apple; ``banana_reward`` and ``fire_reward`` likewise. Any sign.
        death_reward: paid once, in the round of the death.
        step_reward: paid in every round to every player that was alive when it began.
        coordinates: the observation tells the coordinates of everything on the board.
        grid: the observation holds a drawing of the board.
        axes: the rows and columns of that drawing are numbered.
    """

    success_means = "is alive at the end"
    marks = MARKS

    @cached_property
    def text(self) -> SnakeText:
        return SnakeText(self)

    def forfeit(self, state: SnakeState, player: Player, rounds_left: float) -> Rewards:
        """Return what death pays, after rounds in which the snake eats what costs most."""
        bad = [min(0.0, worth) for worth, number in zip(self.food_rewards, self.food_counts, strict=True) if number]
        if worst := min(bad, default=0.0) + min(0.0, self.step_reward):
            if rounds_left == inf:
                raise NotImplementedError("a snake may eat badly round by round: giving up needs a step limit")
            worst *= rounds_left
        return {player: self.death_reward + worst}

    def is_playing(self, state: SnakeState, player: Player) -> bool:
        return bool(state.snakes[self._snake_of[player]])

    def succeeded(self, state: SnakeState, player: Player) -> bool:
        return bool(state.snakes[self._snake_of[player]])

    def observe(self, state: SnakeState, player: Player) -> str:
        return self.text.observe(state, self._snake_of[player])

    def instructions(self, player: Player) -> str:
        return self.text.instructions()

    def what_happened(
        self, state: SnakeState, joint_action: JointAction, next_state: SnakeState, player: Player
    ) -> str:
        number = self._snake_of[player]
        if not state.snakes[number]:
            return ""
        if next_state.snakes[number]:
            return self.text.meal(state, next_state.snakes[number][0])
        cause, others = self.cause_of_death(state, joint_action, next_state, number)
        if cause == "wall":
            return "hit the wall"
        if cause == "body":
            return "ran into its own body" if others == [number] else f"ran into snake {others[0] + 1}"
        certain = others[0] < self.num_players
        return "head to head with " + (" and " if certain else " or ").join(f"snake {other + 1}" for other in others)

    def board(self, state: SnakeState) -> tuple[str, ...]:
        return self.text.board(state.snakes, state)

    def seen_by(self, state: SnakeState, player: Player) -> SeenBoard:
        return self.text.seen_by(state, self._snake_of[player])

    # ---------------------------------------------------------------- exact chances

    @property
    def has_outcomes(self) -> bool:
        """True if any round has few enough outcomes: so it is with two snakes on 100 cells, or three on 14.

        Only a board that was full before may lack more food than there are snakes.
        """
        most: int = self.num_cells ** min(self.num_snakes, self.num_food) * len(ACTIONS) ** self.num_opponents
        return most <= MOST_OUTCOMES

    def outcomes(self, state: SnakeState, joint_action: JointAction) -> list[Outcome[SnakeState]]:
        """List all that may come of a round; a NotImplementedError if that is more than :data:`MOST_OUTCOMES`."""
        if not self.has_outcomes:
            raise NotImplementedError(f"rounds of {self} may have too many outcomes to be listed")
        rounds = self.settled_rounds(state, joint_action)
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

    def settled_rounds(self, state: SnakeState, joint_action: JointAction) -> list[SettledRound]:
        """List what may come of all moves, one for every combination of the opponents' equally likely options."""
        targets = self.player_targets(state, joint_action)
        opponents = state.snakes[self.num_players :]
        options = list(product(*[self.opponent_targets(snake) if snake else (OFF_BOARD,) for snake in opponents]))
        found = []
        for drawn in options:
            after, rewards = self.settled(state, [*targets, *drawn])
            paid, over = dict(zip(self.players, rewards, strict=False)), not any(after.snakes[: self.num_players])
            found.append(SettledRound(1 / len(options), after, paid, over))
        return found

    def returning(self, state: SnakeState) -> tuple[int, int, int]:
        """Return how many apples, bananas and fires reappear: what is missing, until no cell is empty."""
        empty, numbers = len(self.empty_cells(state)), []
        for cells, number in zip(state[1:], self.food_counts, strict=True):
            numbers.append(min(number - len(cells), empty))
            empty -= numbers[-1]
        apples, bananas, fires = numbers
        return apples, bananas, fires

    def empty_cells(self, state: SnakeState) -> list[int]:
        taken = set(state.apples).union(state.bananas, state.fires, *state.snakes)
        return [cell for cell in range(self.num_cells) if cell not in taken]

    def _count(self, state: SnakeState) -> int:
        empty, count = len(self.empty_cells(state)), 1
        for number in self.returning(state):
            count *= comb(empty, number)
            empty -= number
        return count

    def _refilled(self, state: SnakeState) -> Iterator[SnakeState]:
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
    """Yield all ways to put so many things of each kind on different cells."""
    if not numbers:
        yield ()
        return
    for chosen in combinations(cells, numbers[0]):
        rest = [cell for cell in cells if cell not in chosen] if chosen and any(numbers[1:]) else cells
        for others in _placements(rest, numbers[1:]):
            yield chosen, *others
