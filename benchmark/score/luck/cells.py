"""The luck-free returns of one agent in one scenario, and whether there are any; and those freed by a guess."""

from collections.abc import Sequence

from agents.common.intervals import Array
from benchmark.score.luck.estimate import Corrected, corrected
from benchmark.score.luck.terms import LuckValues
from benchmark.score.results import Cell
from textgames.scenarios import Scenario

START, SKILL, LUCK, VARIANCE = range(4)
"""The columns of :attr:`benchmark.score.results.Cell.luck`."""

CONTROLLED_LIMIT = 500
"""The most episodes whose luck is told by a heuristic, which takes about a millisecond a step."""


def luck_free(cell: Cell, scenario: Scenario) -> Corrected | None:
    """The corrected returns in the order of seeds; ``None`` where scores are plain, as without exact values.

    They are worked out once: a board asks for them in every comparison. In a game without chance they are the returns
    themselves.
    """
    if "luck_free" not in cell.memo:
        values = LuckValues.of(scenario.game())
        told = values is None or values.exact
        cell.memo["luck_free"] = _luck_free(cell, scenario.game().return_range or ()) if told else None
    found: Corrected | None = cell.memo["luck_free"]
    return found


def controlled(cell: Cell, scenario: Scenario) -> Corrected | None:
    """The returns with luck taken out as far as a heuristic tells it, in the order of seeds.

    A control variate: the mean is that of the plain returns. ``None`` where there is no such heuristic, the values of
    the game are exact (:func:`luck_free`), or there are too many episodes or too few. What the heuristic promised of a
    start is taken out of nothing: its mean over starts isn't known.
    """
    if "controlled" not in cell.memo:
        values = LuckValues.of(scenario.game())
        offered = values is not None and not values.exact and cell.episodes <= CONTROLLED_LIMIT
        cell.memo["controlled"] = _luck_free(cell, ()) if offered else None
    found: Corrected | None = cell.memo["controlled"]
    return found


def _luck_free(cell: Cell, possible: Sequence[float]) -> Corrected | None:
    luck = cell.luck
    if luck is None:
        return None
    returns = cell.returns()[1]
    if not luck[:, VARIANCE].any():
        ends = [*returns.tolist(), *possible]
        return Corrected(returns, (min(ends), max(ends)) if possible else None, beta=None, sd_ratio=None)
    return corrected(returns, luck[:, START], luck[:, LUCK], possible)


def corrected_returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """The seeds in their order, and the luck-free return on each where there are any, else the plain one."""
    seeds, returns = cell.returns()
    free = luck_free(cell, scenario)
    return seeds, returns if free is None else free.values
