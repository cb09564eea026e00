"""The rules of Snake in words, its state, and a round of play.

Snakes of length 1 start on distinct random cells and all move at once. A snake dies when its new head leaves the board,
meets another new head (all of them die), or enters a cell that any living snake, itself included, occupied **before**
the move: tails count, and a snake that dies in this round still blocks its cells.

Apples, bananas and fires are all food: moving onto one pays its reward, the snake grows by one (its tail stays), and
the food reappears on a uniformly random empty cell after all moves. A snake that dies doesn't eat. Dead snakes leave
the board after the moves, before food reappears. Food that found no empty cell reappears after the first round that
leaves one.

The rules are those of SnakeBench (github.com/gkamradt/SnakeBench), with these differences: food may be worth anything,
there are any number of snakes, the game lasts while a controlled snake lives (SnakeBench stops when one of two is
dead), and the built-in opponent also avoids its own tail (entering it is deadly; SnakeBench's random player may).

Cells are numbered ``y * width + x``; (0, 0) is the bottom left corner, x grows right and y grows up.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import inf
from typing import Literal, NamedTuple

from numpy.random import Generator

from textgames.bases import BoardGame, neighbours
from textgames.settings import MOST, check_number, check_whole
from textgames.tsmg import Action, JointAction, Transition

ACTIONS = ("up", "down", "left", "right")
OFF_BOARD = -1  # where a move leads that leaves the board; also the move of a dead snake

MAX_SNAKES = 9  # heads are drawn as one digit
MOST_WIDTH = 100  # the widest and the highest board: a text of 10,000 cells
REJECTIONS = 16  # random cells tried before the empty ones are listed: on a half-full board once in 65,536

Cells = tuple[int, ...]


class SnakeState(NamedTuple):
    """What there is on the board. Immutable and hashable; equal boards are equal states."""

    # every snake's cells from head to tail, players first, then the built-in opponents; ``()`` is dead
    snakes: tuple[Cells, ...]
    apples: Cells  # apples, bananas, fires: their cells, ascending
    bananas: Cells
    fires: Cells


def _beside(width: int, height: int) -> tuple[Cells, ...]:
    return neighbours(height, width, ((1, 0), (-1, 0), (0, -1), (0, 1)))  # rows are counted upwards


@lru_cache(maxsize=64)
def move_table(width: int, height: int) -> Mapping[str, Cells]:
    """Return ``table[action][cell]``: the cell that a head on ``cell`` moves to, or :data:`OFF_BOARD`."""
    return dict(zip(ACTIONS, zip(*_beside(width, height), strict=True), strict=True))


@lru_cache(maxsize=64)
def neighbour_table(width: int, height: int) -> tuple[Cells, ...]:
    """Return ``table[cell]``: the cells next to ``cell``, in the order of :data:`ACTIONS`."""
    return tuple(tuple(to for to in four if to != OFF_BOARD) for four in _beside(width, height))


class SnakeRules(BoardGame[SnakeState]):
    """The settings, which :class:`textgames.snake.game.Snake` explains, and a round of play.

    Random numbers are drawn from the generator's ``random()``, always in the same order:

    * the initial state: one number for each snake in order, then for each apple, banana and fire; then a new cell for
      each item whose cell an earlier item has;
    * a round: one number for each living opponent in order, then cells for the missing apples, bananas and fires.

    A new cell takes one number per try: cells that are taken are rejected, and after :data:`REJECTIONS` of them one
    more number chooses from the list of empty cells. Either way it is uniform over the empty cells.
    """

    actions: tuple[Action, ...] = ACTIONS
    pays_late = False

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
        check_whole("width", width, 1, MOST_WIDTH)
        check_whole("height", height, 1, MOST_WIDTH)
        check_whole("num_players", num_players, 1)
        counts = {"opponents": num_opponents, "apples": num_apples, "bananas": num_bananas, "fires": num_fires}
        for name, number in counts.items():
            check_whole(f"num_{name}", number, 0, MOST)
        worths = {"apple": apple_reward, "banana": banana_reward, "fire": fire_reward}
        for name, worth in {**worths, "death": death_reward, "step": step_reward}.items():
            check_number(f"{name}_reward", worth, -inf, inf)
        if not (coordinates or grid):
            raise ValueError("coordinates=False and grid=False leave nothing to observe; set at least one to True")
        if axes and not grid:
            raise ValueError("axes=True numbers the rows of the grid, so it needs grid=True, got grid=False")
        self.coordinates, self.grid, self.axes = bool(coordinates), bool(grid), bool(axes)
        self.width, self.height, self.num_cells = int(width), int(height), int(width) * int(height)
        self.num_players, self.num_opponents = int(num_players), int(num_opponents)
        self.num_apples, self.num_bananas, self.num_fires = int(num_apples), int(num_bananas), int(num_fires)
        self.food_counts = self.num_apples, self.num_bananas, self.num_fires
        self.apple_reward, self.banana_reward = float(apple_reward), float(banana_reward)
        self.fire_reward, self.death_reward = float(fire_reward), float(death_reward)
        self.food_rewards = self.apple_reward, self.banana_reward, self.fire_reward
        self.step_reward = float(step_reward)
        self.num_snakes, self.num_food = self.num_players + self.num_opponents, sum(self.food_counts)
        if self.num_snakes > MAX_SNAKES:
            raise ValueError(
                f"at most {MAX_SNAKES} snakes fit the text (heads are drawn as one digit), "
                f"got num_players={num_players} and num_opponents={num_opponents}"
            )
        items = self.num_snakes + self.num_food
        if items > self.num_cells:
            raise ValueError(
                f"the board is too small: width={width} and height={height} make {self.num_cells} cells, "
                f"but {self.num_snakes} snakes and {self.num_food} pieces of food need {items}"
            )
        # the paper's 8 on its board of 10x10; on a larger one food is farther away
        self.usual_limit = max(8, (self.width + self.height) * 2 // 5)
        self.players = tuple(f"player_{i}" for i in range(self.num_players))
        self._snake_of = {player: i for i, player in enumerate(self.players)}
        ends = accumulate((self.num_snakes, *self.food_counts), initial=0)
        self._item_slices = tuple(slice(start, end) for start, end in pairwise(ends))
        self._moves, self._neighbours = move_table(self.width, self.height), neighbour_table(self.width, self.height)

    def initial_state(self, rng: Generator) -> SnakeState:
        num_cells = self.num_cells
        cells = [int(number * num_cells) for number in rng.random(self.num_snakes + self.num_food).tolist()]
        taken = set(cells)
        if len(taken) < len(cells):  # every item whose cell an earlier one has gets another cell, in order
            taken.clear()
            for i, cell in enumerate(cells):
                if cell in taken:
                    cells[i] = cell = self._empty_cell(taken, rng)
                taken.add(cell)
        snakes, apples, bananas, fires = [cells[part] for part in self._item_slices]
        return SnakeState(
            tuple([(cell,) for cell in snakes]), tuple(sorted(apples)), tuple(sorted(bananas)), tuple(sorted(fires))
        )

    def transition(self, state: SnakeState, joint_action: JointAction, rng: Generator) -> Transition[SnakeState]:
        """Play one simultaneous round. The game is over when no player lives, opponents or not."""
        targets = self.player_targets(state, joint_action)
        for snake in state[0][self.num_players :]:
            if snake:
                options = self.opponent_targets(snake)
                targets.append(options[int(rng.random() * len(options))])
            else:
                targets.append(OFF_BOARD)
        after, rewards = self.settled(state, targets)
        if len(after[1]) + len(after[2]) + len(after[3]) < self.num_food:
            after = self._with_missing_food(after, rng)
        if self.num_players == 1:
            return after, {"player_0": rewards[0]}, not after[0][0]
        # zip drops the rewards of the opponents, which stand behind those of the players
        return after, dict(zip(self.players, rewards, strict=False)), not any(after[0][: self.num_players])

    def player_targets(self, state: SnakeState, joint_action: JointAction) -> list[int]:
        """Return the cells that the players' heads move to, :data:`OFF_BOARD` for the dead, or raise ValueError."""
        moves, targets = self._moves, []
        try:
            for player, snake in zip(self.players, state[0], strict=False):
                targets.append(moves[joint_action[player]][snake[0]] if snake else OFF_BOARD)
        except KeyError:
            raise ValueError(
                f"every living player needs one of the actions {', '.join(ACTIONS)}; {player} has "
                f"{joint_action.get(player)!r} in joint_action={dict(joint_action)!r}"
            ) from None
        return targets

    def settled(self, state: SnakeState, targets: Sequence[int]) -> tuple[SnakeState, list[float]]:
        """Return what comes of all heads' moves before eaten food reappears, and what every snake is paid."""
        before, apples, bananas, fires = state
        step, occupied = self.step_reward, list[int]()
        for snake in before:
            occupied += snake
        after: list[Cells] = []
        rewards: list[float] = []
        for snake in before:
            target = targets[len(after)]
            if not snake:
                reward = 0.0
            elif target < 0 or target in occupied or targets.count(target) > 1:
                snake, reward = (), self.death_reward + step
            elif target in apples:
                snake, reward = (target, *snake), self.apple_reward + step
                apples = tuple([cell for cell in apples if cell != target])
            elif target in bananas:
                snake, reward = (target, *snake), self.banana_reward + step
                bananas = tuple([cell for cell in bananas if cell != target])
            elif target in fires:
                snake, reward = (target, *snake), self.fire_reward + step
                fires = tuple([cell for cell in fires if cell != target])
            else:
                snake, reward = (target, *snake[:-1]), step
            after.append(snake)
            rewards.append(reward)
        return SnakeState(tuple(after), apples, bananas, fires), rewards

    def cause_of_death(
        self, state: SnakeState, joint_action: JointAction, next_state: SnakeState, number: int
    ) -> tuple[Literal["wall", "body", "head"], list[int]]:
        """Return what snake ``number``, a player's, died of in a round: ``"wall"``; ``"body"`` with the one snake that
        it ran into, which may be itself; or ``"head"`` with the snakes whose heads it met.

        The moves of opponents that died are not known: if no player's head was met, all opponents that can have moved
        to the same cell are named, and at least one of them did.
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
            for i in range(self.num_players, len(snakes))
            if snakes[i] and not next_state.snakes[i] and target in self.opponent_targets(snakes[i])
        ]

    def opponent_targets(self, snake: Cells) -> Cells | list[int]:
        """Return the equally likely next cells of an opponent's head: no wall or own body, if any other is left."""
        head = snake[0]
        options: Cells | list[int] = self._neighbours[head]
        if len(snake) > 1:
            options = [cell for cell in options if cell not in snake]
        return options or [self._moves[action][head] for action in ACTIONS]

    def _with_missing_food(self, state: SnakeState, rng: Generator) -> SnakeState:
        snakes, *foods = state
        taken = {cell for cells in (*snakes, *foods) for cell in cells}
        for kind, number in enumerate(self.food_counts):
            while len(foods[kind]) < number and len(taken) < self.num_cells:
                cell = self._empty_cell(taken, rng)
                taken.add(cell)
                foods[kind] = tuple(sorted((*foods[kind], cell)))
        return SnakeState(snakes, *foods)

    def _empty_cell(self, taken: set[int], rng: Generator) -> int:
        num_cells = self.num_cells
        for _ in range(REJECTIONS):
            cell = int(rng.random() * num_cells)
            if cell not in taken:
                return cell
        empty = [cell for cell in range(num_cells) if cell not in taken]
        return empty[int(rng.random() * len(empty))]
