"""The rules of Snake: settings, state, and one simultaneous round. No text in here.

Snakes of length 1 start on distinct random cells and all move at once. A snake dies when its new head

* leaves the board,
* meets another new head (all of them die), or
* enters a cell that any living snake, itself included, occupied **before** the move: tails count, and a snake that
  dies in this round still blocks its cells.

Apples, bananas and fires are all food: moving onto one pays its reward, the snake grows by one (its tail stays), and
the food reappears on a uniformly random empty cell after all moves. A snake that dies doesn't eat. Dead snakes leave
the board after the moves, before food reappears. Food that found no empty cell reappears after the first round that
leaves one.

The rules are those of SnakeBench (github.com/gkamradt/SnakeBench), with these differences: food may be worth anything,
there are any number of snakes, the game goes on while a controlled snake lives (SnakeBench stops when one of two is
dead), and the built-in opponent also avoids its own tail (entering it is deadly; SnakeBench's random player may).

Cells are numbered ``y * width + x``; (0, 0) is the bottom left corner, x grows right and y grows up.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from textgames.settings import MOST, check_whole

if TYPE_CHECKING:
    import numpy as np

ACTIONS = ("up", "down", "left", "right")
OFF_BOARD = -1
"""Where a move leads that leaves the board; also the move of a snake that is dead."""
MAX_SNAKES = 9
"""The largest number of snakes, because heads are drawn as one digit."""
MOST_WIDTH = 100
"""The widest and the highest board: a text of 10,000 cells."""
REJECTIONS = 16
"""Random cells tried before the empty ones are listed: on a half-full board the list is needed once in 65,536."""

Cells = tuple[int, ...]


class SnakeState(NamedTuple):
    """What there is on the board. Immutable and hashable; equal boards are equal states.

    Attributes:
        snakes: every snake's cells from head to tail, players first, then the built-in opponents; ``()`` is dead.
        apples: the cells of the apples, ascending.
        bananas: the cells of the bananas, ascending.
        fires: the cells of the fires, ascending.
    """

    snakes: tuple[Cells, ...]
    apples: Cells
    bananas: Cells
    fires: Cells


@dataclass(frozen=True, kw_only=True)
class SnakeConfig:
    """The settings of the rules, which :class:`textgames.snake.game.Snake` explains.

    Raises:
        ValueError: naming the setting, its value and what is accepted.
    """

    width: int = 10
    height: int = 10
    num_players: int = 1
    num_opponents: int = 1
    num_apples: int = 5
    num_bananas: int = 0
    num_fires: int = 0
    apple_reward: float = 1.0
    banana_reward: float = 1.0
    fire_reward: float = -1.0
    death_reward: float = -1.0
    step_reward: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_reward"):
                object.__setattr__(self, field.name, _finite(field.name, value))
            else:
                least = 1 if field.name in ("width", "height", "num_players") else 0
                check_whole(field.name, value, least, MOST_WIDTH if field.name in ("width", "height") else MOST)
                object.__setattr__(self, field.name, int(value))
        if self.num_snakes > MAX_SNAKES:
            raise ValueError(
                f"at most {MAX_SNAKES} snakes fit the text (heads are drawn as one digit), "
                f"got num_players={self.num_players} and num_opponents={self.num_opponents}"
            )
        items = self.num_snakes + self.num_food
        if items > self.num_cells:
            raise ValueError(
                f"the board is too small: width={self.width} and height={self.height} make {self.num_cells} cells, "
                f"but {self.num_snakes} snakes and {self.num_food} pieces of food need {items}"
            )

    @property
    def num_cells(self) -> int:
        return self.width * self.height

    @property
    def num_snakes(self) -> int:
        return self.num_players + self.num_opponents

    @property
    def num_food(self) -> int:
        return self.num_apples + self.num_bananas + self.num_fires


def _finite(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]  # what isn't a number raises
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (bool, str)) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


@lru_cache(maxsize=64)
def move_table(width: int, height: int) -> Mapping[str, Cells]:
    """``table[action][cell]``: the cell that a head on ``cell`` moves to, or :data:`OFF_BOARD`."""
    table: dict[str, list[int]] = {action: [] for action in ACTIONS}
    for cell in range(width * height):
        y, x = divmod(cell, width)
        table["up"].append(cell + width if y < height - 1 else OFF_BOARD)
        table["down"].append(cell - width if y > 0 else OFF_BOARD)
        table["left"].append(cell - 1 if x > 0 else OFF_BOARD)
        table["right"].append(cell + 1 if x < width - 1 else OFF_BOARD)
    return {action: tuple(cells) for action, cells in table.items()}


@lru_cache(maxsize=64)
def neighbour_table(width: int, height: int) -> tuple[Cells, ...]:
    """``table[cell]``: the cells next to ``cell``, in the order of :data:`ACTIONS`."""
    moves = move_table(width, height)
    return tuple(
        tuple(moves[action][cell] for action in ACTIONS if moves[action][cell] != OFF_BOARD)
        for cell in range(width * height)
    )


class SnakeRules:
    """``P`` and ``r`` of Snake for one :class:`SnakeConfig`.

    Random numbers are drawn from the generator's ``random()``, always in the same order:

    * the initial state: one number for each snake in order, then for each apple, banana and fire; then a new cell for
      each item whose cell an earlier item has;
    * a round: one number for each living opponent in order, then cells for the missing apples, bananas and fires.

    A new cell takes one number per try: cells that are taken are rejected, and after :data:`REJECTIONS` of them one
    more number chooses from the list of empty cells. Either way it is uniform over the empty cells.
    """

    def __init__(self, config: SnakeConfig) -> None:
        self.config = config
        self.players = tuple(f"player_{i}" for i in range(config.num_players))
        self._num_players = config.num_players
        self._num_cells = config.num_cells
        self._num_food = config.num_food
        self._num_items = config.num_snakes + config.num_food
        ends = list(accumulate((config.num_snakes, config.num_apples, config.num_bananas, config.num_fires), initial=0))
        self._item_slices = tuple(slice(start, end) for start, end in pairwise(ends))
        self._moves = move_table(config.width, config.height)
        self._neighbours = neighbour_table(config.width, config.height)
        self._apple_reward, self._banana_reward = config.apple_reward, config.banana_reward
        self._fire_reward, self._step_reward = config.fire_reward, config.step_reward
        self._death_reward = config.death_reward + config.step_reward

    def initial_state(self, rng: "np.random.Generator") -> SnakeState:
        """Snakes of length 1 and all food on distinct, uniformly random cells."""
        num_cells = self._num_cells
        cells = [int(number * num_cells) for number in rng.random(self._num_items).tolist()]
        taken = set(cells)
        if len(taken) < len(cells):  # every item whose cell an earlier one has gets another cell, in order
            taken.clear()
            for i, cell in enumerate(cells):
                if cell in taken:
                    cells[i] = cell = self._empty_cell(taken, rng)
                taken.add(cell)
        snakes, apples, bananas, fires = self._item_slices
        return SnakeState(
            tuple([(cell,) for cell in cells[snakes]]),
            tuple(sorted(cells[apples])),
            tuple(sorted(cells[bananas])),
            tuple(sorted(cells[fires])),
        )

    def transition(
        self, state: SnakeState, joint_action: Mapping[str, str], rng: "np.random.Generator"
    ) -> tuple[SnakeState, dict[str, float], bool]:
        before, apples, bananas, fires = state
        targets = self._targets(before, joint_action, rng)
        occupied: list[int] = []
        for snake in before:
            occupied += snake
        after: list[Cells] = []
        rewards: list[float] = []
        for snake in before:
            target = targets[len(after)]
            if not snake:
                reward = 0.0
            elif target < 0 or target in occupied or targets.count(target) > 1:
                snake, reward = (), self._death_reward
            elif target in apples:
                snake, reward = (target, *snake), self._apple_reward + self._step_reward
                apples = tuple([cell for cell in apples if cell != target])
            elif target in bananas:
                snake, reward = (target, *snake), self._banana_reward + self._step_reward
                bananas = tuple([cell for cell in bananas if cell != target])
            elif target in fires:
                snake, reward = (target, *snake), self._fire_reward + self._step_reward
                fires = tuple([cell for cell in fires if cell != target])
            else:
                snake, reward = (target, *snake[:-1]), self._step_reward
            after.append(snake)
            rewards.append(reward)
        new_state = SnakeState(tuple(after), apples, bananas, fires)
        if len(apples) + len(bananas) + len(fires) < self._num_food:
            new_state = self._with_missing_food(new_state, rng)
        if self._num_players == 1:
            return new_state, {"player_0": rewards[0]}, not after[0]
        # zip drops the rewards of the opponents, which stand behind those of the players
        return new_state, dict(zip(self.players, rewards, strict=False)), not any(after[: self._num_players])

    def _targets(
        self, snakes: tuple[Cells, ...], joint_action: Mapping[str, str], rng: "np.random.Generator"
    ) -> list[int]:
        moves = self._moves
        targets = []
        try:
            for player, snake in zip(self.players, snakes, strict=False):
                targets.append(moves[joint_action[player]][snake[0]] if snake else OFF_BOARD)
        except KeyError:
            raise ValueError(
                f"every living player needs one of the actions {', '.join(ACTIONS)}; {player} has "
                f"{joint_action.get(player)!r} in joint_action={dict(joint_action)!r}"
            ) from None
        for snake in snakes[self._num_players :]:
            if snake:
                options = self.opponent_targets(snake)
                targets.append(options[int(rng.random() * len(options))])
            else:
                targets.append(OFF_BOARD)
        return targets

    def cause_of_death(
        self, state: SnakeState, joint_action: Mapping[str, str], next_state: SnakeState, number: int
    ) -> tuple[Literal["wall", "body", "head"], list[int]]:
        """What snake ``number``, a player's, died of in a round, by the conditions of :meth:`transition`.

        Returns:
            ``"wall"``; or ``"body"`` with the one snake that it ran into, which may be itself; or ``"head"`` with the
            snakes whose heads it met. The moves of opponents that died are not known: where no player's head was met,
            all opponents that can have moved to the same cell are named, and at least one of them did.
        """
        snakes = state.snakes
        targets = {
            i: self._moves[joint_action[player]][snakes[i][0]] for i, player in enumerate(self.players) if snakes[i]
        }
        target = targets.pop(number)
        if target == OFF_BOARD:
            return "wall", []
        if hit := [i for i, snake in enumerate(snakes) if target in snake]:
            return "body", hit
        met = [i for i, other in targets.items() if other == target]
        return "head", met or [
            i
            for i in range(self._num_players, len(snakes))
            if snakes[i] and not next_state.snakes[i] and target in self.opponent_targets(snakes[i])
        ]

    def opponent_targets(self, snake: Cells) -> Cells | list[int]:
        """The equally likely next cells of a built-in opponent's head.

        They are those that are neither a wall nor a cell of its own body; with none left, all four directions.
        """
        head = snake[0]
        options: Cells | list[int] = self._neighbours[head]
        if len(snake) > 1:
            options = [cell for cell in options if cell not in snake]
        return options or [self._moves[action][head] for action in ACTIONS]

    def _with_missing_food(self, state: SnakeState, rng: "np.random.Generator") -> SnakeState:
        """The state with as much of its missing food as there are empty cells, each on a random one of them."""
        snakes, apples, bananas, fires = state
        taken = set(apples).union(bananas, fires, *snakes)
        config = self.config
        return SnakeState(
            snakes,
            self._refill(apples, config.num_apples, taken, rng),
            self._refill(bananas, config.num_bananas, taken, rng),
            self._refill(fires, config.num_fires, taken, rng),
        )

    def _refill(self, food: Cells, number: int, taken: set[int], rng: "np.random.Generator") -> Cells:
        """``food`` brought up to ``number`` pieces while there are empty cells; adds them to ``taken``."""
        if len(food) == number:
            return food
        cells = list(food)
        while len(cells) < number and len(taken) < self._num_cells:
            cell = self._empty_cell(taken, rng)
            taken.add(cell)
            cells.append(cell)
        cells.sort()
        return tuple(cells)

    def _empty_cell(self, taken: set[int], rng: "np.random.Generator") -> int:
        num_cells = self._num_cells
        for _ in range(REJECTIONS):
            cell = int(rng.random() * num_cells)
            if cell not in taken:
                return cell
        empty = [cell for cell in range(num_cells) if cell not in taken]
        return empty[int(rng.random() * len(empty))]
