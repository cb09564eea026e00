"""Snake as a text-mediated stochastic game: the rules of :mod:`rules` seen through the texts of :mod:`text`."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textgames.snake.chances import SnakeChances
from textgames.snake.rules import ACTIONS, SnakeConfig, SnakeRules, SnakeState
from textgames.snake.text import LEGEND, PALETTE, SnakeText
from textgames.tsmg import TSMG, Action, Outcome, Player

if TYPE_CHECKING:
    import numpy as np


class Snake(TSMG[SnakeState]):
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

    Raises:
        ValueError: naming the setting, its value and what is accepted.
    """

    success_means = "is alive at the end"
    actions: tuple[Action, ...] = ACTIONS
    pays_late = False
    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = PALETTE
    legend: ClassVar[Mapping[str, str]] = LEGEND

    def __init__(
        self,
        *,
        width: int = 10,
        height: int = 10,
        num_players: int = 1,
        num_opponents: int = 1,
        num_apples: int = 5,
        num_bananas: int = 0,
        num_fires: int = 0,
        apple_reward: float = 1.0,
        banana_reward: float = 1.0,
        fire_reward: float = -1.0,
        death_reward: float = -1.0,
        step_reward: float = 0.0,
        coordinates: bool = True,
        grid: bool = True,
        axes: bool = False,
    ) -> None:
        self.config = SnakeConfig(
            width=width,
            height=height,
            num_players=num_players,
            num_opponents=num_opponents,
            num_apples=num_apples,
            num_bananas=num_bananas,
            num_fires=num_fires,
            apple_reward=apple_reward,
            banana_reward=banana_reward,
            fire_reward=fire_reward,
            death_reward=death_reward,
            step_reward=step_reward,
        )
        # the paper's 8 on its board of 10x10; on a larger one food is farther away
        self.usual_limit = max(8, (self.config.width + self.config.height) * 2 // 5)
        self.rules = SnakeRules(self.config)
        self.text = SnakeText(self.config, coordinates=coordinates, grid=grid, axes=axes)
        self.players = self.rules.players
        self._snake_of = {player: i for i, player in enumerate(self.players)}

    def initial_state(self, rng: "np.random.Generator") -> SnakeState:
        return self.rules.initial_state(rng)

    def transition(
        self, state: SnakeState, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[SnakeState, dict[Player, float], bool]:
        """Play one simultaneous round. The game is over when no player lives; opponents alone don't go on."""
        return self.rules.transition(state, joint_action, rng)

    @cached_property
    def chances(self) -> SnakeChances:
        """The exact chances of a round; made when they are first asked for."""
        return SnakeChances(self.rules)

    @property
    def has_outcomes(self) -> bool:
        """Whether a round has few enough outcomes to be listed: with two snakes on up to 100 cells, for example."""
        return self.chances.offered

    def outcomes(self, state: SnakeState, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[SnakeState]]:
        if not self.has_outcomes:
            raise NotImplementedError(f"rounds of {self} may have too many outcomes to be listed")
        return self.chances.outcomes(state, joint_action)

    def forfeit(self, state: SnakeState, player: Player, rounds_left: float) -> dict[Player, float]:
        """What death pays, after rounds in which the snake eats what costs most."""
        config = self.config
        food = (("num_apples", "apple_reward"), ("num_bananas", "banana_reward"), ("num_fires", "fire_reward"))
        bad = [min(0.0, getattr(config, reward)) for number, reward in food if getattr(config, number)]
        if worst := min(bad, default=0.0) + min(0.0, config.step_reward):
            if rounds_left == float("inf"):
                raise NotImplementedError("a snake may eat badly round by round: giving up needs a step limit")
            worst *= rounds_left
        return {player: config.death_reward + worst}

    def is_playing(self, state: SnakeState, player: Player) -> bool:
        return bool(state.snakes[self._snake_of[player]])

    def succeeded(self, state: SnakeState, player: Player) -> bool:
        """Whether the player's snake lives: an episode is a success of those who are alive at its end."""
        return bool(state.snakes[self._snake_of[player]])

    def observe(self, state: SnakeState, player: Player) -> str:
        """The board as ``player`` reads it; its own snake is number 1."""
        return self.text.observe(state, self._snake_of[player])

    def instructions(self, player: Player) -> str:
        return self.text.instructions()

    def what_happened(
        self, state: SnakeState, joint_action: Mapping[Player, Action], next_state: SnakeState, player: Player
    ) -> str:
        number = self._snake_of[player]
        if not state.snakes[number]:
            return ""
        if next_state.snakes[number]:
            return self.text.meal(state, next_state.snakes[number][0])
        cause, others = self.rules.cause_of_death(state, joint_action, next_state, number)
        if cause == "wall":
            return "hit the wall"
        if cause == "body":
            return "ran into its own body" if others == [number] else f"ran into snake {others[0] + 1}"
        certain = others[0] < self.config.num_players
        return "head to head with " + (" and " if certain else " or ").join(f"snake {other + 1}" for other in others)

    def board(self, state: SnakeState) -> tuple[str, ...]:
        """The spectator's rows, top row first: heads 1 to 9 (players first), T, A, B, F and _."""
        return self.text.board(state)
