"""How far play on 4x4 Frozen Lake can go that sees only so much of the board.

    python research/perf/lake_sight.py

A player that looks ``depth`` moves ahead sees what the moves towards the goal (down and right) lead to over ice, as
many of them in a row, and whether it stands at the right or the lower edge. With its position it knows the cell, too.
What is printed is the success of the best play that depends on that alone, on the maps of the training seeds, for which
it is chosen, and on the 500 fresh ones of ``textbench reproduce``. It is found by policy iteration over what is seen in
place of states, which can end in a local optimum: a lower bound.
"""

import argparse
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from textgames import SCENARIOS, TRAINING_SEEDS
from textgames.frozen_lake import FROZEN, GOAL, HOLE, START, move_table

Floats = npt.NDArray[np.float64]
View = Callable[[str, int], Hashable]
SCENARIO = SCENARIOS["frozen-lake"]
SIDE = 4
CELLS = SIDE**2
TARGETS = np.array(move_table(SIDE, SIDE))[:, 1:3]  # where down and right lead; off the board: the cell itself
SWEEPS, EAGERNESS = 60, 6.0


class Maps:
    """Different maps (n of them, ``tiles``) and how often each occurs (``counts``); (n, 16) ``ended`` and ``goals``."""

    def __init__(self, seeds: range) -> None:
        game = SCENARIO.game()
        drawn = [game.initial_state(np.random.default_rng(seed)).lake.tiles for seed in seeds]
        self.tiles, counts = np.unique(drawn, return_counts=True)
        self.counts = counts.astype(float)
        letters = np.array([list(tiles) for tiles in self.tiles])
        self.goals, self.ended = letters == GOAL, (letters == GOAL) | (letters == HOLE)

    def mean(self, values: npt.NDArray[Any]) -> float:
        return float(values @ self.counts / self.counts.sum())

    def solve(self, chances: Floats) -> tuple[Floats, Floats]:
        """Return how likely play arrives from every cell, (n, 16), and after every move, (n, 16, 2).

        ``chances`` (n, 16, 2) are those of down and right. A move off the board is never better than failing.
        """
        arrives, after = self.goals.astype(float), np.zeros((*self.goals.shape, 2))
        for cell in reversed(range(CELLS)):
            for move, target in enumerate(TARGETS[cell].tolist()):
                if target != cell:
                    after[:, cell, move] = arrives[:, target]
            moved = (chances[:, cell] * after[:, cell]).sum(1)
            arrives[:, cell] = np.where(self.ended[:, cell], arrives[:, cell], moved)
        return arrives, after

    def visits(self, chances: Floats) -> Floats:
        """Return (n, 16) how likely play comes to every cell in which it moves."""
        visits = np.zeros(self.goals.shape)
        visits[:, 0] = 1.0
        for cell in range(CELLS):
            visits[self.ended[:, cell], cell] = 0.0
            for move, target in enumerate(TARGETS[cell].tolist()):
                if target != cell:
                    visits[:, target] += chances[:, cell, move] * visits[:, cell]
        return visits


def ahead(tiles: str, cell: int, depth: int) -> tuple[Hashable, ...]:
    """Return what down and right lead to, and what comes behind it as far as there is ice."""
    found: list[Hashable] = []
    for target in TARGETS[cell].tolist() if depth else ():
        kind = "edge" if target == cell else tiles[target].replace(START, FROZEN)
        found.append((kind, ahead(tiles, target, depth - 1) if kind == FROZEN else ()))
    return tuple(found)


def numbered(maps: Maps, view: View, numbers: dict[Hashable, int]) -> npt.NDArray[np.int64]:
    """Return (n, 16) the number of what is seen in every cell; ``numbers`` grows with what is new."""
    return np.array(
        [[numbers.setdefault(view(str(tiles), cell), len(numbers)) for cell in range(CELLS)] for tiles in maps.tiles]
    )


def best(view: View, training: Maps, fresh: Maps) -> tuple[int, float, float]:
    """Return how many different views there are, and the best play's success on the training and the fresh maps."""
    numbers: dict[Hashable, int] = {}
    seen = numbered(training, view, numbers)
    policy = np.full((len(numbers), 2), 0.5)
    for _ in range(SWEEPS):
        _, after = training.solve(policy[seen])
        weight = training.visits(policy[seen]) * training.counts[:, None]
        worth = np.stack([np.bincount(seen.ravel(), (weight * after[..., move]).ravel()) for move in (0, 1)], axis=1)
        most = worth.max(1, keepdims=True)
        policy *= np.exp(EAGERNESS * (worth - most) / np.maximum(most, 1e-9))
        policy /= policy.sum(1, keepdims=True)
    policy = (policy == policy.max(1, keepdims=True)).astype(float)
    policy /= policy.sum(1, keepdims=True)
    there = numbered(fresh, view, numbers)
    unknown = np.full((len(numbers) - len(policy), 2), 0.5)  # views of fresh maps alone: even chances
    policy_there = np.concatenate([policy, unknown])[there]
    reached = [
        maps.mean(maps.solve(played)[0][:, 0]) for maps, played in ((training, policy[seen]), (fresh, policy_there))
    ]
    return len(policy), reached[0], reached[1]


def careful(maps: Maps) -> Floats:
    """Return (n, 16, 2) chances of a player that avoids holes beside it and the edge, and chooses evenly else."""
    inside = np.arange(CELLS)[:, None] != TARGETS
    holes = maps.ended & ~maps.goals
    allowed: Floats = (inside & ~holes[:, TARGETS]).astype(float)
    chances: Floats = allowed / np.maximum(1.0, allowed.sum(2, keepdims=True))
    return chances


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    training, first = Maps(range(len(TRAINING_SEEDS))), SCENARIO.seed(1000)
    fresh = Maps(range(first, first + 500))
    for name, maps in (("training", training), ("fresh", fresh)):
        arrives = maps.solve(careful(maps))[0][:, 0]
        print(
            f"{name} maps: {maps.counts.sum():.0f}, {len(maps.tiles)} different; {maps.mean(arrives == 0):.1%} need a "
            f"move away from the goal; {maps.mean(arrives < 1):.1%} have a dead end; a player that avoids the holes "
            f"beside it and chooses evenly else arrives with {maps.mean(arrives):.3f}"
        )
    print("\n| what is seen | views | training maps | fresh maps |\n|---|---|---|---|")
    for depth in (1, 2, 3, 4, 5, 6):
        for place in (False, True):

            def view(tiles: str, cell: int, depth: int = depth, place: bool = place) -> Hashable:
                edges = cell % SIDE == SIDE - 1, cell // SIDE == SIDE - 1
                return (cell if place else edges), ahead(tiles, cell, depth)

            views, known, new = best(view, training, fresh)
            told = f"{depth} move{'s' if depth > 1 else ''} ahead{', and the position' if place else ''}"
            print(f"| {told} | {views} | {known:.3f} | {new:.3f} |", flush=True)


if __name__ == "__main__":
    main()
