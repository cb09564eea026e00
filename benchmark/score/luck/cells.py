"""The luck-free returns of one agent in one scenario, and whether there are any."""

from collections.abc import Sequence

from benchmark.score.luck.estimate import Corrected, corrected
from benchmark.score.results import Cell
from benchmark.score.statistics import Array
from textgames.scenarios import Scenario

START, SKILL, LUCK, VARIANCE = range(4)
"""The columns of :attr:`benchmark.score.results.Cell.luck`."""


def luck_free(cell: Cell, scenario: Scenario) -> Corrected | None:
    """The corrected returns in the order of seeds; ``None`` where scores are plain.

    They are worked out once: a board asks for them in every comparison. In a game without chance they are the returns
    themselves.
    """
    if "luck_free" not in cell.memo:
        cell.memo["luck_free"] = _luck_free(cell, scenario.game().return_range or ())
    found: Corrected | None = cell.memo["luck_free"]
    return found


def _luck_free(cell: Cell, possible: Sequence[float]) -> Corrected | None:
    luck = cell.luck
    if luck is None:
        return None
    returns = cell.returns()[1]
    if not luck[:, VARIANCE].any():
        ends = [*returns.tolist(), *possible]
        return Corrected(returns, min(ends), max(ends), beta=None, sd_ratio=None)
    return corrected(returns, luck[:, START], luck[:, LUCK], possible)


def corrected_returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """The seeds in their order, and the luck-free return on each where there are any, else the plain one."""
    seeds, returns = cell.returns()
    free = luck_free(cell, scenario)
    return seeds, returns if free is None else free.values
