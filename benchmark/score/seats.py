"""What a game tells of an agent besides its return: its metrics, and in games for several the return in every seat."""

from collections.abc import Sequence

import numpy as np

from agents.intervals import Array, Estimate
from benchmark.score.results import Cell, columns_per_seed
from benchmark.score.statistics import mean_estimate
from textgames.scenarios import Scenario


def seat_means(cell: Cell, scenario: Scenario) -> dict[str, Estimate]:
    """``{player: the agent's mean return in this seat}`` in a game for several, of the seats that it had."""
    game = scenario.game()
    if len(game.players) == 1:
        return {}
    seats, scores = np.array(cell.columns["seat"]), np.array(cell.columns["score"])
    in_seat = {player: np.where(seats == seat, scores, np.nan) for seat, player in enumerate(game.players)}
    return _over_seeds(cell, in_seat, game.return_range or ())


def metric_means(cell: Cell) -> dict[str, Estimate]:
    """``{name: its mean over the seeds that have it}`` of every metric."""
    return _over_seeds(cell, {name: np.array(values) for name, values in cell.metrics.items()})


def _over_seeds(cell: Cell, rows: dict[str, Array], possible: Sequence[float] = ()) -> dict[str, Estimate]:
    _, *means = columns_per_seed({"seed": cell.columns["seed"], **rows})
    return {name: mean_estimate(values, possible) for name, values in zip(rows, means, strict=True) if len(values)}
