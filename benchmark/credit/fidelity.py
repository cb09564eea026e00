"""How much the advantages that a method assigns are like the true ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.common.intervals import Array, Estimate, Range, over_parts, over_rows, ratio
from agents.msgrpo.credit.batch import Batch, Credit, Floats, StepCredit
from benchmark.credit.exact.truth import Truth

NOTHING = 1e-9
"""Advantages of no larger size count as 0: they are what rounding leaves."""

_CORRELATIONS: Range = (-1.0, 1.0)
_SHARES: Range = (0.0, 1.0)


@dataclass(frozen=True)
class Fidelity:
    """The likeness of assigned and true advantages.

    Attributes:
        correlation: Pearson's, over all steps that were played; states count as often as they are visited.
        sign_agreement: the share of the steps whose true advantage isn't 0 that were assigned one of the same sign; an
            assigned 0 counts half, as a tossed coin would.
        mean_correlation: the same correlation once luck is averaged out: of the mean advantage that an action was
            assigned in a state after so many steps, weighted by visits. What is missing to 1 is systematic, as far as
            there were batches enough.
        mean_sign_agreement: likewise.
    """

    correlation: Estimate
    sign_agreement: Estimate
    mean_correlation: Estimate
    mean_sign_agreement: Estimate


@dataclass(frozen=True)
class Compared:
    """One method's advantages of some batches beside the true ones.

    Attributes:
        parts: (batches, 8) sums over the steps of each batch: 1, x, y, xx, yy, xy, agreeing, counted.
        cells: ``{(steps played, decision, place): (visits, sum assigned, true)}`` of every batch.
    """

    parts: Array
    cells: list[dict[tuple[int, int, int], tuple[float, float, float]]]


def per_step(credit: StepCredit) -> Floats:
    """(T,) the advantage of every step; of tokens that have their own, the mean."""
    if isinstance(credit, np.ndarray):
        return credit.astype(np.float64)
    return np.array([float(np.mean(each)) if len(each) else 0.0 for each in credit])


def granularity(credits: Sequence[Credit]) -> str:
    """What the advantages tell apart: "token" within a response, "step" within an episode, or "episode"."""
    all_steps = [advantages for credit in credits for advantages in credit.advantages]
    if any(np.ptp(own) > NOTHING for each in all_steps if not isinstance(each, np.ndarray) for own in each if len(own)):
        return "token"
    return "step" if any(np.ptp(per_step(each)) > NOTHING for each in all_steps if len(each)) else "episode"


def compare(batches: Sequence[Batch], credits: Sequence[Credit], truth: Truth) -> Compared:
    """Set the advantages that were assigned in some batches beside the true ones."""
    parts, cells = [], []
    for batch, credit in zip(batches, credits, strict=True):
        sums = np.zeros(8)
        met: dict[tuple[int, int, int], tuple[float, float, float]] = {}
        for trajectory, advantages in zip(batch.trajectories, credit.advantages, strict=True):
            assigned, true = per_step(advantages), truth.advantages(trajectory)
            sums += _sums(assigned, true)
            for cell, x, y in zip(truth.cells(trajectory), assigned.tolist(), true.tolist(), strict=True):
                visits, total, _ = met.get(cell, (0.0, 0.0, y))
                met[cell] = visits + 1, total + x, y
        parts.append(sums)
        cells.append(met)
    return Compared(np.array(parts), cells)


def _sums(x: Array, y: Array) -> Array:
    counted = np.abs(y) > NOTHING
    agreeing = np.where(np.abs(x) > NOTHING, x * y > 0, 0.5)[counted]
    return np.array([len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y, agreeing.sum(), counted.sum()], dtype=np.float64)


def fidelity(compared: Compared) -> Fidelity:
    """The figures of what was compared; their intervals are over batches, so they hold for other episodes from here."""
    return Fidelity(
        correlation=over_rows(compared.parts, _correlation, _CORRELATIONS),
        sign_agreement=over_rows(compared.parts, ratio(6, 7), _SHARES),
        mean_correlation=_of_means(compared, _correlation, _CORRELATIONS),
        mean_sign_agreement=_of_means(compared, ratio(6, 7), _SHARES),
    )


def _correlation(means: Array) -> Array:
    n, x, y, xx, yy, xy = np.moveaxis(means[..., :6], -1, 0)
    spread_x, spread_y = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
    found: Array = (xy / n - x * y / n**2) / np.sqrt(spread_x * spread_y)
    return np.where((spread_x > NOTHING**2) & (spread_y > NOTHING**2), found, np.nan)


def _of_means(compared: Compared, of: Callable[[Array], Array], within: Range) -> Estimate:
    """A figure of the mean advantage in each cell, weighted by visits."""
    names = sorted({cell for met in compared.cells for cell in met})
    number = {cell: index for index, cell in enumerate(names)}
    visits, sums = np.zeros((2, len(compared.cells), len(names)))
    true = np.zeros(len(names))
    for row, met in enumerate(compared.cells):
        for cell, (count, total, advantage) in met.items():
            visits[row, number[cell]], sums[row, number[cell]], true[number[cell]] = count, total, advantage

    def columns(n: Array, total: Array) -> Array:
        x = np.divide(total, n, out=np.zeros_like(total), where=n > 0)
        counted = n * (np.abs(true) > NOTHING)
        agreeing = counted * np.where(np.abs(x) > NOTHING, x * true > 0, 0.5)
        each = [n, n * x, n * true, n * x * x, n * true**2, n * x * true, agreeing, counted]
        return np.stack([column.sum(axis=-1) for column in each], axis=-1)

    return over_parts(lambda weights: of(columns(weights @ visits, weights @ sums)), len(visits), within)
