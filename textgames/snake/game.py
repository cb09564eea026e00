"""Snake as a text-mediated stochastic game: rules, texts and chances together."""

from functools import cached_property
from math import inf

from textgames.snake.chances import SnakeChances
from textgames.snake.rules import SnakeState
from textgames.snake.text import MARKS, SnakeText
from textgames.tsmg import JointAction, Player, Rewards, SeenBoard


class Snake(SnakeChances):
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
