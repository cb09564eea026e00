"""The shortest ways to several pieces of food: of many boards at once, with numpy."""

from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST_PIECES = 5
"""A tour is of so many pieces at most, those nearest to its start."""


@lru_cache(maxsize=16)
def distance_table(width: int, height: int) -> NDArray[np.int16]:
    """``table[a, b]``: moves from cell ``a`` to cell ``b`` on an empty board."""
    y, x = np.divmod(np.arange(width * height), width)
    table: NDArray[np.int16] = (np.abs(y[:, None] - y) + np.abs(x[:, None] - x)).astype(np.int16)
    return table


@lru_cache(maxsize=16)
def _layers(pieces: int) -> tuple[tuple[Ints, Ints, Ints], ...]:
    """How the tours of ``k + 1`` pieces come from those of ``k``, for ``k = 1, ..., pieces - 1``.

    The tours of ``k`` pieces are ordered by (which pieces, which one is last). Of every tour of ``k + 1``: which tours
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
    """How many moves it takes at least to visit ``1, 2, ...`` pieces of food, as if nothing were in the way.

    By dynamic programming over sets of pieces (Bellman, 1962; Held and Karp, 1962).

    Args:
        heads: where each tour starts, (boards,).
        food: cells of the food of each board, (boards, pieces).
        distances: between cells, as :func:`distance_table` has them.

    Returns:
        (boards, min(pieces, MOST_PIECES))
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
