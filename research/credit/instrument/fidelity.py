"""How much the advantages that a method assigns are like the true ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import nan

import numpy as np

from agents.common import Array, Estimate, Range, over_rows, ratio, without_each
from agents.msgrpo import StepCredit
from agents.msgrpo.credit import Batch, Credit, Floats
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.gradients.quality import cosine_of_means

NOTHING = 1e-9
"""Advantages of no larger size count as 0: they are what rounding leaves."""

CORRELATIONS: Range = (-1.0, 1.0)
SHARES: Range = (0.0, 1.0)


@dataclass(frozen=True)
class Fidelity:
    """The likeness of assigned and true advantages."""

    correlation: Estimate  # Pearson's, over all steps that were played; states count as often as they are visited
    # the share of the steps whose true advantage isn't 0 that were assigned one of the same sign; an assigned 0
    # counts half, as a tossed coin would
    sign_agreement: Estimate
    # the correlation of the true advantage with the one that an action is assigned on average in a state after so
    # many steps, weighted by visits. It estimates what very many batches would give, from products of different
    # batches, and isn't cut off at 1; -1 to 1 if so few batches tell nothing of it
    mean_correlation: Estimate
    # the sign agreement of the mean advantages, of as many batches as there were. Their noise brings it nearer to a
    # half, and more batches further away, so it has no interval
    mean_sign_agreement: Estimate


@dataclass(frozen=True)
class Compared:
    """One method's advantages of some batches beside the true ones."""

    parts: Array  # (batches, 8) sums over the steps of each batch: 1, x, y, xx, yy, xy, agreeing, counted
    # ``{(steps played, decision, place): (visits, sum assigned, true)}`` of every batch
    cells: list[dict[tuple[int, int, int], tuple[float, float, float]]]


def per_step(credit: StepCredit) -> Floats:
    """Return (T,) the advantage of every step; the mean of tokens that have their own."""
    if isinstance(credit, np.ndarray):
        return credit.astype(np.float64)
    return np.array([float(np.mean(each)) if len(each) else 0.0 for each in credit])


def granularity(credits: Sequence[Credit]) -> str:
    """Return what the advantages tell apart: "token" within a response, "step" within an episode, or "episode"."""
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
            both = (assigned, true, assigned * assigned, true * true, assigned * true, *agreement(assigned, true))
            sums += [len(assigned), *(part.sum() for part in both)]
            for cell, x, y in zip(truth.cells(trajectory), assigned.tolist(), true.tolist(), strict=True):
                visits, total, _ = met.get(cell, (0.0, 0.0, y))
                met[cell] = visits + 1, total + x, y
        parts.append(sums)
        cells.append(met)
    return Compared(np.array(parts), cells)


def agreement(x: Array, y: Array) -> Array:
    """Return (2, n) how far each assigned advantage has the true one's sign, and whether it counts: the true one isn't
    0."""
    counted = (np.abs(y) > NOTHING).astype(np.float64)
    return np.stack([counted * np.where(np.abs(x) > NOTHING, x * y > 0, 0.5), counted])


def fidelity(compared: Compared) -> Fidelity:
    """Return the figures of what was compared; intervals are over batches, so they hold for other episodes from
    here."""
    names = sorted({cell for met in compared.cells for cell in met})
    visits, sums = np.zeros((2, len(compared.cells), len(names)))  # of every cell in every batch
    true, number = np.zeros(len(names)), {cell: index for index, cell in enumerate(names)}
    for row, met in enumerate(compared.cells):
        for cell, (count, total, advantage) in met.items():
            place = number[cell]
            visits[row, place], sums[row, place], true[place] = count, total, advantage
    met_at_all = visits.sum(axis=0)
    means = np.divide(sums.sum(axis=0), met_at_all, out=np.zeros_like(true), where=met_at_all > 0)
    agreeing, counted = (agreement(means, true) * met_at_all).sum(axis=-1).tolist()
    return Fidelity(
        correlation=over_rows(compared.parts, correlation, CORRELATIONS),
        sign_agreement=over_rows(compared.parts, ratio(6, 7), SHARES),
        mean_correlation=_mean_correlation(visits, sums, true),
        mean_sign_agreement=Estimate(agreeing / counted if counted else nan),
    )


def correlation(means: Array) -> Array:
    """Return Pearson's correlation of the means (..., 6 or more) of 1, x, y, xx, yy and xy; NaN if one doesn't vary."""
    n, x, y, xx, yy, xy = np.moveaxis(means[..., :6], -1, 0)
    spread_x, spread_y = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
    found: Array = (xy / n - x * y / n**2) / np.sqrt(spread_x * spread_y)
    return np.where((spread_x > NOTHING**2) & (spread_y > NOTHING**2), found, np.nan)


def _mean_correlation(batches: Array, sums: Array, true: Array) -> Estimate:
    """Estimate the correlation of the expected assigned and the true advantage of a cell, weighted by visits.

    Given are the visits of every cell in every batch, (batches, cells), the sums assigned there, and (cells,) the true
    advantages. All sums are over pairs of different batches, so that a batch's noise isn't squared, which would make
    the correlation smaller the fewer batches there are. With ``S`` the sum assigned in a cell of a batch, ``N`` its
    visits and ``y`` its true advantage, the products are ``S S'``, ``S N'``, ``N N'``, ``S N' y`` and so on, scaled so
    that a cell that several batches met weighs its visits.
    """
    n = len(batches)
    if n < 2:
        return Estimate(nan)
    visits = batches.sum(axis=0)
    pairs = visits**2 - (batches**2).sum(axis=0)  # of a cell's visits in different batches
    weight = np.sqrt(np.divide(visits, pairs, out=np.zeros_like(visits), where=pairs > 0))
    x, one, y = (weight * each for each in (sums, batches, batches * true))
    of = partial(_of_pairs, (one @ one.T, x @ one.T, y @ one.T, x @ x.T, y @ y.T, x @ y.T))
    everything, each = of(np.full(n, 1 / n)), of(without_each(n))
    mean_x, mean_y, spread_x, spread_y, slope = (float(figure) for figure in everything)
    if not (spread_y > NOTHING**2 and abs(spread_x) > NOTHING**2):
        return Estimate(nan)
    noise = float(np.nan_to_num(np.var(each[4]))) * (n - 1)  # of the slope: the jackknife's
    rest = x - mean_x * one - slope * (y - mean_y * one)  # what doesn't lie along the truth
    different = ~np.eye(n, dtype=bool)
    across = (rest @ rest.T)[different] / (one @ one.T)[different].mean()
    # in units of the true variance, in which the noise of visits cancels
    along, square = slope**2 - noise, spread_x / spread_y
    without = np.stack([each[4] ** 2 - noise, each[2] / each[3]])
    return cosine_of_means(slope, (along, square), without, float(np.mean(across**2)) / spread_y**2)


def _of_pairs(products: Sequence[Array], weights: Array) -> Array:
    """Return (5, ...) means of x and y, their variances and the slope of x over y, from different batches' products.

    ``products`` are (batches, batches) each: 1 1, x 1, y 1, x x, y y and x y; ``weights`` are of the batches.
    """

    def over(product: Array) -> Array:
        both = np.einsum("...i,ij,...j->...", weights, product, weights)
        pairs: Array = both - (weights**2) @ np.diag(product)
        return pairs

    one, x, y, xx, yy, xy = map(over, products)
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = x / one, y / one
        spread_y = yy / one - y**2
        return np.stack([x, y, xx / one - x**2, spread_y, (xy / one - x * y) / spread_y])
