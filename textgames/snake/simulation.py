"""Playing many copies of one Snake board ahead at the same time, with numpy: the engine of :mod:`solver`.

The rules are those of :mod:`rules`, on arrays of ``n`` boards, except that food that finds the board full does not come
back. A wall around the board makes a move an addition to the number of a cell. A body is not a list: every cell holds
the number of tail moves after which its snake will have left it, so that growing costs nothing. Snakes are reordered:
row 0 is the one whose return is measured. Once it is dead, its board no longer matters.
"""

from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from textgames.snake.game import Snake
from textgames.snake.rules import SnakeState

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ValueT = TypeVar("ValueT", bound=np.generic)

# more tail moves than any snake makes: walls are left after so many, and a dead snake is taken to have made them
NEVER = 1_000_000
NO_TARGET = 0  # an empty place in a list of targets; cell 0 is a corner of the wall
RESPAWN_TRIES = 5  # random cells that are tried before the empty ones are listed
BLOCKED = -1e9  # the score of a move that is certain death


# How players move in the simulation; the units are rewards.
PULL = 0.6  # a piece of food ``d`` cells away pulls with ``worth * PULL**d``
APPROACH = 4.0  # what a move towards the target of a route counts
CAUTION = 0.5  # the malus for a cell that another head may enter too, as a part of what a death costs
DISLIKE = 6.0  # the malus for harmful food, as a multiple of what it costs
TURN_BACK = 0.05  # the malus for going back where the head came from, which only a snake of length 1 can
# the probability with which another player moves like a built-in opponent instead; in half of the boards it is not
# cautious either. This stands for not knowing what moves it.
STRAY = 0.2


class Simulation:
    """Plays food routes to the end of the horizon, for one game.

    A route is a first move and a list of food to visit. After it, or when its food is gone, the snake follows the pull
    of the food: to the neighbouring cell that is free and at which the pulls of all worthwhile food add up to most,
    less a malus for harmful food and for cells that another head may enter too. Built-in opponents move by their rule.
    Another player is taken to follow the food as well, but now and then (:data:`STRAY`) to move at random, and in half
    of the boards not to care which other head may enter its cell.

    ``inner``, (width * height,), is the walled number of every cell of the rules, ``(y + 1) * stride + x + 1``;
    ``offsets``, (4,), what a move adds to it, in the order of ACTIONS; ``worth``, (pieces of food + 1,), what each
    piece is worth, of which number 0 is no food.
    """

    def __init__(self, game: Snake) -> None:
        self.game = game
        self.shape = (game.height + 2, game.width + 2)
        self.stride = game.width + 2
        self.num_cells = self.shape[0] * self.shape[1]
        self.offsets: Ints = np.array([self.stride, -self.stride, -1, 1])
        y, x = np.divmod(np.arange(self.num_cells), self.stride)
        self.x, self.y = x, y
        self.wall: Bools = (x == 0) | (x > game.width) | (y == 0) | (y > game.height)
        self.inner: Ints = np.flatnonzero(~self.wall)
        self.worth: Floats = np.repeat([0.0, *game.food_rewards], [1, *game.food_counts])
        self._any_harmful = bool((self.worth < 0).any())
        best = float(np.max(self.worth))
        self.risk = CAUTION * (max(0.0, -game.death_reward) + best)
        # numpy's own powers differ in the last bit from one processor to the next, which decides ties between moves
        powers = np.array([float(Fraction(PULL) ** steps) for steps in range(max(self.shape))])
        columns, rows = np.arange(self.stride), np.arange(self.shape[0])
        # a Manhattan power is a product: pull**(|dx| + |dy|) = pull**|dx| * pull**|dy|
        self._across: Floats = powers[np.abs(np.subtract.outer(columns, columns))]
        self._upward: Floats = powers[np.abs(np.subtract.outer(rows, rows))]

    def play(
        self,
        state: SnakeState,
        snake: int,
        first: Ints,
        targets: Ints,
        repeats: int,
        rounds: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Play every route ``repeats`` times; repeat ``j`` has the same random numbers under every route.

        ``first`` is the first move of every route, an index into ACTIONS, of shape (routes,); ``targets`` the walled
        cells of food to visit, (routes, depth), :data:`NO_TARGET` for none. The returns are (routes, repeats).
        """
        boards = Boards(self, state, snake, targets, repeats)
        moves: Ints | None = np.repeat(self.offsets[first], repeats)
        for t in range(rounds):
            boards.play_round(moves, rng, stratified=t == 0)
            moves = None
        return boards.returns.reshape(len(first), repeats)

    def pull_of(self, cells: Ints, pieces: Ints) -> Floats:
        """Return (m, height + 2, width + 2) what each of m pieces of food adds to the score of every cell."""
        worth = self.worth[pieces]
        good = np.maximum(worth, 0.0)
        x, y = self.x[cells], self.y[cells]
        pull: Floats = (self._upward[y] * good[:, None])[:, :, None] * self._across[x][:, None, :]
        if self._any_harmful:
            harmful = np.flatnonzero(worth < 0)
            pull[harmful, y[harmful], x[harmful]] = DISLIKE * worth[harmful]
        return pull


class Boards:
    """The boards of one call of :meth:`Simulation.play`: ``n = routes * repeats`` of them, in arrays."""

    def __init__(self, simulation: Simulation, state: SnakeState, snake: int, targets: Ints, repeats: int) -> None:
        self.simulation, self.repeats, self.routes = simulation, repeats, len(targets)
        game, inner, num_cells = simulation.game, simulation.inner, simulation.num_cells
        n = repeats * len(targets)
        rows = [snake, *(i for i in range(game.num_snakes) if i != snake and state.snakes[i])]
        self.is_player = [i < game.num_players for i in rows]
        self.rows = range(len(rows))
        self.first_cell: Ints = np.arange(n) * num_cells
        one_board = np.zeros((len(rows), num_cells), dtype=np.int64)
        for row, i in enumerate(rows):
            cells = state.snakes[i]
            one_board[row, inner[list(cells)]] = np.arange(len(cells), 0, -1)
        one_board[0, simulation.wall] = NEVER
        # (rows, n * cells) after how many tail moves of its snake a cell is left: it is taken until there were so many
        self.leaves: list[Ints] = [_copies(board, n).reshape(-1) for board in one_board]
        self.heads: list[Ints] = [np.full(n, inner[state.snakes[i][0]]) for i in rows]
        self.came_from: list[Ints] = [np.zeros(n, dtype=np.int64) for _ in rows]
        self.lengths: list[Ints] = [np.full(n, len(state.snakes[i])) for i in rows]
        self.tail_moves: list[Ints] = [np.zeros(n, dtype=np.int64) for _ in rows]
        self.alive: list[Bools] = [np.ones(n, dtype=np.bool_) for _ in rows]
        self.cautious: Bools = np.arange(n) % repeats < (repeats + 1) // 2  # the other players, if they follow food
        self.returns: Floats = np.zeros(n)
        pieces, start = list[int](), 1
        for cells, number in zip(state[1:], game.food_counts, strict=True):
            pieces += range(start, start + len(cells))
            start += number
        where = inner[[cell for cells in state[1:] for cell in cells]] if pieces else np.zeros(0, np.int64)
        food, numbers = np.zeros(num_cells, dtype=np.int64), np.array(pieces, dtype=np.int64)
        food[where] = numbers
        self.food: Ints = _copies(food, n).reshape(-1)  # (n * cells,) the piece on every cell; 0 is none
        self.pull: Floats = _copies(simulation.pull_of(where, numbers).sum(axis=0), n)
        self.any_targets = bool((targets != NO_TARGET).any())
        ends = np.full((len(targets), 1), NO_TARGET)
        self.targets: Ints = np.repeat(np.concatenate([targets, ends], axis=1), repeats, axis=0)
        self.next_target: Ints = np.arange(n) * self.targets.shape[1]  # into the flat targets

    def play_round(self, first_moves: Ints | None, rng: np.random.Generator, stratified: bool) -> None:
        targets = []
        for row in self.rows:
            if row == 0 and first_moves is not None:
                moves = first_moves
            elif row == 0:
                moves = self._moves_by_pull(row)
            elif self.is_player[row]:
                strays = self._numbers(rng, stratified) < STRAY
                moves = np.where(strays, self._random_moves(row, self._numbers(rng, False)), self._moves_by_pull(row))
            else:
                moves = self._random_moves(row, self._numbers(rng, stratified))
            targets.append(self.heads[row] + moves)
        deaths = [self._deaths(row, targets) for row in self.rows]
        game = self.simulation.game
        self.returns += self.alive[0] * game.step_reward + deaths[0] * game.death_reward
        for row in self.rows:
            self.alive[row] &= ~deaths[row]
            if row:
                self.tail_moves[row][deaths[row]] = NEVER
        eaten = [self._advance(row, targets[row]) for row in self.rows]
        for boards, cells, pieces in eaten:
            if len(boards):
                self._respawn(boards, cells, pieces, rng)

    def _numbers(self, rng: np.random.Generator, stratified: bool) -> Floats:
        """Return (n,) uniform numbers, the same for every route; stratified ones are spread evenly over the repeats."""
        numbers = rng.random(self.repeats)
        if stratified:
            numbers = (rng.permutation(self.repeats) + numbers) / self.repeats
        return _copies(numbers, self.routes).reshape(-1)

    def _moves_by_pull(self, row: int) -> Ints:
        simulation = self.simulation
        cells = self.heads[row] + simulation.offsets[:, None]  # (4, n)
        index = cells + self.first_cell
        score = self.pull.ravel().take(index)
        score -= TURN_BACK * (cells == self.came_from[row])
        if row == 0 and self.any_targets:
            score += APPROACH * self._towards_target()
        for other in self.rows:
            if other != row:
                gap = np.abs(cells - self.heads[other])
                wary = self.alive[other] & self.cautious if row else self.alive[other]
                score -= simulation.risk * (((gap == 1) | (gap == simulation.stride)) & wary)
            score[self.leaves[other].take(index) > self.tail_moves[other]] = BLOCKED
        moves: Ints = simulation.offsets[score.argmax(axis=0)]
        return moves

    def _towards_target(self) -> Bools:
        """Return (4, n) whether each move of row 0 goes towards its target, if it has one."""
        simulation = self.simulation
        target = self.targets.ravel().take(self.next_target)
        gone = (self.food.take(self.first_cell + target) == 0) & (target != NO_TARGET)
        self.next_target += gone
        target = self.targets.ravel().take(self.next_target)
        right = simulation.x[target] - simulation.x[self.heads[0]]
        up = simulation.y[target] - simulation.y[self.heads[0]]
        nearer: Bools = np.stack([up > 0, up < 0, right < 0, right > 0])
        nearer &= target != NO_TARGET
        return nearer

    def _random_moves(self, row: int, numbers: Floats) -> Ints:
        """Move as the built-in opponent: uniform over what is neither a wall nor its own body, else over everything."""
        simulation = self.simulation
        cells = self.heads[row] + simulation.offsets[:, None]
        own = self.leaves[row].take(cells + self.first_cell) > self.tail_moves[row]
        polite = ~(own | simulation.wall.take(cells))
        count = polite.sum(axis=0)
        polite |= count == 0
        rank = (numbers * np.where(count == 0, 4, count)).astype(np.int64)
        seen = np.zeros(len(rank), dtype=np.int64)
        choice = np.zeros(len(rank), dtype=np.int64)  # how many directions come before the chosen one
        for direction in polite[:3]:
            seen += direction
            choice += seen <= rank
        moves: Ints = simulation.offsets[choice]
        return moves

    def _deaths(self, row: int, targets: list[Ints]) -> Bools:
        """Return (n,) which living snakes of the row die."""
        target = targets[row]
        index = target + self.first_cell
        dead: Bools = np.zeros(len(target), dtype=np.bool_)
        for other in self.rows:
            dead |= self.leaves[other].take(index) > self.tail_moves[other]
            if other != row:
                dead |= (targets[other] == target) & self.alive[other]
        return dead & self.alive[row]

    def _advance(self, row: int, target: Ints) -> tuple[Ints, Ints, Ints]:
        """Move the living snakes of a row; returns where something was eaten: (boards, cells, pieces)."""
        alive = self.alive[row]
        index = target + self.first_cell
        piece = self.food.take(index) * alive
        ate = piece > 0
        if row == 0:
            self.returns += self.simulation.worth[piece]
        self.lengths[row] += ate
        self.tail_moves[row] += ~ate
        self.came_from[row] = self.heads[row]
        self.heads[row] = np.where(alive, target, self.heads[row])
        entered = index[alive]
        self.leaves[row][entered] = (self.tail_moves[row] + self.lengths[row])[alive]
        boards = np.flatnonzero(ate)
        return boards, target[boards], piece[boards]

    def _respawn(self, boards: Ints, cells: Ints, pieces: Ints, rng: np.random.Generator) -> None:
        simulation = self.simulation
        self.food[self.first_cell[boards] + cells] = 0
        pull = self.pull[boards] - simulation.pull_of(cells, pieces)
        num_inner = len(simulation.inner)
        numbers = (rng.random((RESPAWN_TRIES, self.repeats)) * num_inner).astype(np.int64)
        left = np.arange(len(boards))
        for drawn in numbers:
            where, piece = boards[left], pieces[left]
            # pieces are shifted against each other, or two that are eaten at once would land on one cell
            new = simulation.inner[(drawn[where % self.repeats] + 17 * piece) % num_inner]
            index = self.first_cell[where] + new
            taken = self.food[index] > 0
            for row in self.rows:
                taken |= self.leaves[row][index] > self.tail_moves[row][where]
            free = ~taken
            self.food[index[free]] = piece[free]
            pull[left[free]] += simulation.pull_of(new[free], piece[free])
            left = left[taken]
            if not len(left):
                break
        for i in left:
            pull[i] += self._put_anywhere(boards[i], pieces[i], rng)
        self.pull[boards] = pull

    def _put_anywhere(self, board: np.int64, piece: np.int64, rng: np.random.Generator) -> Floats:
        """Put a piece on one of a board's empty cells, if there is one; returns its pull."""
        index = self.first_cell[board] + self.simulation.inner
        taken = self.food[index] > 0
        for row in self.rows:
            taken |= self.leaves[row][index] > self.tail_moves[row][board]
        empty = np.flatnonzero(~taken)
        if not len(empty):
            return np.zeros(self.simulation.shape)
        chosen = empty[int(rng.random() * len(empty))]
        self.food[index[chosen]] = piece
        pull: Floats = self.simulation.pull_of(self.simulation.inner[[chosen]], np.array([piece]))[0]
        return pull


def _copies(values: NDArray[ValueT], n: int) -> NDArray[ValueT]:
    """Return ``n`` copies of an array, along a new first axis; faster than ``np.tile``."""
    copies = np.empty((n, *values.shape), dtype=values.dtype)
    copies[:] = values
    return copies
