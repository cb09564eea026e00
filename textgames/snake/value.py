"""A fixed guess of what a board of Snake is worth, by which luck is told: how long the tours of its food take.

What a snake will eat depends mostly on how near the good food lies together: if the shortest tour of ``k`` pieces
takes ``T_k`` moves and ``h`` rounds are left, the guess is ::

    V_h = worth * [ c + d h + sum over k with T_k <= h of (a_k + b_k (h - T_k)) ]

where ``worth`` is the mean reward of the food that is worth having. The coefficients were fitted to what the greedy
player got on training seeds, by least squares; ``research/perf/snake_value.py`` does it again. Any numbers would keep
luck fair, and these should never change without a new version.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from textgames.rounds import at_most
from textgames.snake.game import MOST_OUTCOMES, Snake
from textgames.snake.rules import SnakeState
from textgames.tsmg import Action, Player
from textgames.yardsticks import NO_VARIANCE, HeuristicYardstick, Moments

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

HORIZON = 20  # more rounds than these aren't told apart: the coefficients are fitted up to here

COEFFICIENTS: dict[int, tuple[float, ...]] = {
    5: (0.092, -0.044, 1.025, 0.071, 0.761, 0.088, 0.536, 0.056, 0.368, 0.059, 0.195, 0.046),
    3: (0.084, -0.038, 1.006, 0.081, 0.671, 0.088, 0.271, 0.089),
}
"""``{pieces of good food on the board: (c, d, a_1, b_1, a_2, b_2, ...)}``, in units of what a piece is worth."""

MOST_PIECES = 5  # a tour is of so many pieces at most, those nearest to its start


@lru_cache(maxsize=16)
def distance_table(width: int, height: int) -> NDArray[np.int16]:
    """Return ``table[a, b]``: moves from cell ``a`` to cell ``b`` on an empty board."""
    y, x = np.divmod(np.arange(width * height), width)
    table: NDArray[np.int16] = (np.abs(y[:, None] - y) + np.abs(x[:, None] - x)).astype(np.int16)
    return table


@lru_cache(maxsize=16)
def _layers(pieces: int) -> tuple[tuple[Ints, Ints, Ints], ...]:
    """Return how the tours of ``k + 1`` pieces come from those of ``k``, for ``k = 1, ..., pieces - 1``.

    The tours of ``k`` pieces are ordered by (which pieces, which one is last). For every tour of ``k + 1``: which tours
    of ``k`` it may come from, which pieces those end with, each of shape (tours, k), and which piece is new, (tours,).
    """
    found = []
    for size in range(1, pieces):
        before = [(chosen, last) for chosen in combinations(range(pieces), size) for last in chosen]
        place = {tour: index for index, tour in enumerate(before)}
        after = [(chosen, last) for chosen in combinations(range(pieces), size + 1) for last in chosen]
        origins = [
            [(tuple(piece for piece in chosen if piece != last), end) for end in chosen if end != last]
            for chosen, last in after
        ]
        found.append(
            (
                np.array([[place[origin] for origin in each] for each in origins]),
                np.array([[end for _, end in each] for each in origins]),
                np.array([last for _, last in after]),
            )
        )
    return tuple(found)


def tour_times(heads: Ints, food: Ints, distances: NDArray[np.int16]) -> Ints:
    """Return how many moves it takes at least to visit ``1, 2, ...`` pieces of food, as if nothing were in the way.

    By dynamic programming over sets of pieces (Bellman, 1962; Held and Karp, 1962). ``heads``, (boards,), are where the
    tours start, and ``food`` is (boards, pieces); the result is (boards, min(pieces, MOST_PIECES)).
    """
    start = distances[heads[:, None], food]  # (boards, pieces)
    if food.shape[1] > MOST_PIECES:
        nearest = np.argsort(start, axis=1, kind="stable")[:, :MOST_PIECES]
        food, start = np.take_along_axis(food, nearest, 1), np.take_along_axis(start, nearest, 1)
    between = distances[food[:, :, None], food[:, None, :]]  # (boards, pieces, pieces)
    if not food.shape[1]:  # all of it waits for an empty cell
        return np.zeros((len(heads), 0), dtype=np.int64)
    times, ways = [start.min(axis=1)], start
    for origins, ends, new in _layers(food.shape[1]):
        ways = (ways[:, origins] + between[:, ends, new[:, None]]).min(axis=2)  # (boards, tours)
        times.append(ways.min(axis=1))
    return np.stack(times, axis=1).astype(np.int64)


class SnakeValue(HeuristicYardstick):
    """Guesses of what boards are worth in a game of one player with good food and rounds of few outcomes."""

    method = "shortest tours of the food, fitted (heuristic)"
    version = "1"

    def __init__(self, game: Snake) -> None:
        super().__init__(game)
        if game.num_players > 1:
            raise ValueError(f"values are guessed for one player, got num_players={game.num_players}")
        if not game.has_outcomes:
            raise ValueError(f"{game} may have too many outcomes in a round")
        rewards, numbers = game.food_rewards, game.food_counts
        good = [reward for reward, number in zip(rewards, numbers, strict=True) for _ in range(number) if reward > 0]
        if not good:
            raise ValueError("there is no food that is worth having")
        self._game, self._good = game, [reward > 0 for reward in rewards]
        self._worth = sum(good) / len(good)
        self._coefficients = np.array(COEFFICIENTS[min(COEFFICIENTS, key=lambda fitted: abs(fitted - len(good)))])
        self._distances = distance_table(game.width, game.height)

    def value(self, state: SnakeState, steps_left: int | None, player: Player) -> float:
        if steps_left == 0:
            return 0.0
        heads, food = np.array([state.snakes[0][0]]), np.array([self._good_food(state)], dtype=np.int64)
        return float(self._guesses(heads, food, steps_left)[0])

    def moments(self, state: SnakeState, action: Action, steps_left: int | None, player: Player) -> Moments:
        after = None if steps_left is None else steps_left - 1
        chances, worths = [], []
        for settled in self._game.settled_rounds(state, {player: action}):
            guesses = np.zeros(1)
            if not settled.over:
                food = self._food_after(settled.state)
                guesses = self._guesses(np.full(len(food), settled.state.snakes[0][0]), food, after)
            worths.append(settled.rewards[player] + guesses)
            chances.append(np.full(len(guesses), settled.chance / len(guesses)))
        chance, worth = np.concatenate(chances), np.concatenate(worths)
        mean = float(chance @ worth)
        variance = float(chance @ (worth - mean) ** 2)
        return Moments(mean, variance if variance > NO_VARIANCE else 0.0)

    def _food_after(self, state: SnakeState) -> Ints:
        """Return where the good food may be, (boards, pieces); pieces that return are on every set of cells."""
        there = self._good_food(state)
        kinds = zip(self._game.returning(state), self._good, strict=True)
        missing = sum(number for number, good in kinds if good)
        if not missing:
            return np.array([there], dtype=np.int64)
        empty = self._game.empty_cells(state)
        if comb(len(empty), missing) > MOST_OUTCOMES:
            raise NotImplementedError(f"{missing} pieces of food reappear at once, in too many ways to be listed")
        new = np.array(list(combinations(empty, missing)))
        return np.concatenate([np.tile(np.array(there, dtype=np.int64), (len(new), 1)), new], axis=1)

    def _good_food(self, state: SnakeState) -> list[int]:
        return [cell for cells, good in zip(state[1:], self._good, strict=True) if good for cell in cells]

    def _guesses(self, heads: Ints, food: Ints, steps_left: int | None) -> Floats:
        left = at_most(HORIZON, steps_left)
        if left == 0:
            return np.zeros(len(heads))
        times = tour_times(heads, food, self._distances)
        seen = features(times, np.full(len(heads), left))[:, : len(self._coefficients)]
        guesses: Floats = self._worth * (seen @ self._coefficients[: seen.shape[1]])
        return guesses


def features(times: Ints, steps_left: Ints) -> Floats:
    """Return the features that the coefficients weigh, (boards, 2 + 2 * pieces), from times of (boards, pieces)."""
    slack = steps_left[:, None] - times
    reached = (slack >= 0).astype(np.float64)
    pairs = np.stack([reached, reached * slack], axis=2).reshape(len(times), -1)
    return np.concatenate([np.ones((len(times), 1)), steps_left[:, None], pairs], axis=1)
