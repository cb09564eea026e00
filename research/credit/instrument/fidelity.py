"""How good credit is: how like the true advantages the assigned ones are, and the policy gradient that they give.

With ``G_b`` the gradient of batch b, n of them, ``m = E G``, ``g`` the exact gradient and ``u = g / |g|``:

* the cosine of ``G_b`` and ``g``, batch by batch;
* bias: the cosine of ``m`` and ``g``, which more episodes would approach;
* variance: ``E |G - m|^2 / |m|^2``;
* signal to noise: ``<m, u>^2 / (E |G|^2 - <m, u>^2)``, divided by the batch's episodes or its response tokens. Noise
  here is all that doesn't point along ``g``, bias included.

**Squares of means are products of different batches**, since ``E |mean G|^2 = |m|^2 + tr(Cov G) / n`` makes ``m`` look
longer than it is: ::

    P = sum_(b != c) <G_b, u><G_c, u> / (n (n - 1))        Q = sum_(b != c) <G_b, G_c> / (n (n - 1))

and ``P / Q`` estimates the squared cosine of ``m`` and ``g``. D = Q - P are the products of what lies across u. If m
points along g its mean is 0 and its variance ``tau^2 = 2 E (<G_b, G_c> - <G_b, u><G_c, u>)^2 / (n (n - 1))``, so the
ratio scatters around 1 on both sides. Nothing is cut off there: ::

    bias = sign(mean <G_b, u>) root(P Q / (Q^2 + tau^2))

where the root of a negative number is that of its size, negative. ``Q / (Q^2 + tau^2)`` is ``1 / Q`` unless Q isn't
told from 0: so a method without any mean gradient reads about 0. The interval is Fieller's (1954): all x for which ``P
- x Q`` lies within Student's quantile of the jackknife's standard error, or -1 to 1 if they have no end. Simulated
coverage with 5 to 32 batches: 98 to 99% of a bias of 1, 93 to 99% of 0.7, and 99% of noise's 0.

If ``g`` is an estimate from sampled responses, ``|g|^2`` is the product of its two halves for the same reason; it is
off by about ``(1 - reliability) / root(d)``, so the interval of the bias is widened by ``1 - reliability`` of the
squares at its ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.common import Array, Estimate, Range, mean, over_parts, over_rows, ratio, student_quantile, without_each
from agents.msgrpo import StepCredit
from agents.msgrpo.credit import Batch, Credit, Floats
from research.credit.instrument.exact.truth import Truth

COSINES: Range = (-1.0, 1.0)
SQUARES: Range = (0.0, inf)


class BatchGradient(NamedTuple):
    """One batch's mean gradient."""

    vector: Tensor  # (size,) float32
    along: float  # its product with the exact gradient
    episodes: float  # how many it is the mean of
    tokens: float  # response tokens of the update


@dataclass(frozen=True)
class GradientQuality:
    """The figures at the head of this file."""

    cosine: Estimate  # of a batch's gradient and the exact one, the mean over batches
    # the cosine of the mean gradient and the exact one, estimated from products of different batches: 1 for a method
    # without bias in direction, and not cut off there
    bias: Estimate
    variance: Estimate  # of the gradient, relative to its mean's squared length
    signal_to_noise_per_episode: Estimate  # of a batch, divided by its episodes
    signal_to_noise_per_token: Estimate  # divided by the response tokens of the update


def quality(batches: Sequence[BatchGradient], norm: float, reliability: float = 1.0) -> GradientQuality:
    """Return what is said of the gradients of some batches; ``norm`` and ``reliability`` are the exact gradient's."""
    vectors = torch.stack([each.vector for each in batches]).double()
    products = (vectors @ vectors.T).numpy()
    along = np.array([each.along for each in batches]) / (norm or np.nan)
    lengths = np.sqrt(np.diag(products))
    cosines = np.divide(along, lengths, out=np.zeros(len(batches)), where=lengths > 0)
    if not norm > 0:
        nothing = Estimate(nan)
        return GradientQuality(nothing, nothing, nothing, nothing, nothing)
    of = _of_weights(products, along)

    def variance(weights: Array) -> Array:
        _, _, square, total = of(weights)
        return np.maximum(total / np.where(square > 0, square, np.nan) - 1, 0.0)

    def signal_to_noise(cost: float) -> Estimate:
        def figure(weights: Array) -> Array:
            _, signal, _, total = of(weights)
            return np.maximum(signal, 0.0) / (total - signal) / cost

        return over_parts(figure, len(along), SQUARES)

    n, unsure = len(along), 1 - reliability  # the relative error of the exact squared length
    bias = Estimate(nan)
    if n > 1:
        across = float(np.mean((products - np.outer(along, along))[~np.eye(n, dtype=bool)] ** 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_along, p, q, _ = (float(x) for x in of(np.full(n, 1 / n)))
            without = np.stack(of(without_each(n))[1:3])
        bias = cosine_of_means(mean_along, (p, q), without, across, unsure)
    return GradientQuality(
        cosine=over_rows(cosines[:, None], mean(0), COSINES),
        bias=bias,
        variance=over_parts(variance, len(along), SQUARES),
        signal_to_noise_per_episode=signal_to_noise(float(np.mean([each.episodes for each in batches]))),
        signal_to_noise_per_token=signal_to_noise(float(np.mean([each.tokens for each in batches]))),
    )


def cosine_of_means(
    sign: float, squares: tuple[float, float], without: Floats, across: float, unsure: float = 0.0
) -> Estimate:
    """Estimate the cosine of a mean and a known direction from products of different parts, as the head of this file.

    Args:
        sign: has the cosine's sign.
        squares: P and Q.
        without: (2, n) P and Q without each of the n parts.
        across: the mean square of a pair's product of what lies across the direction.
        unsure: by how much of their size the interval's ends are moved away in the square.
    """
    (p, q), n = squares, without.shape[1]
    if not q:
        return Estimate(nan)
    value = p * q / (q * q + 2 * across / (n * (n - 1)))
    # Fieller's interval, by the jackknife's covariance of P and Q: all x for which |P - x Q| is small enough
    (pp, pq), (_, qq) = float(student_quantile(n - 1)) ** 2 * np.cov(without) * (n - 1) ** 2 / n
    a, half_b, c = q * q - qq, p * q - pq, p * p - pp
    root, ends = half_b * half_b - a * c, (-1.0, 1.0)
    if a > 0 and root >= 0:
        low, high = (half_b - sqrt(root)) / a, (half_b + sqrt(root)) / a
        ends = low - unsure * abs(low), high + unsure * abs(high)
    found = float(np.sign(sign)) * np.array([value, min(value, *ends), max(value, *ends)])
    middle, *ends = (np.sign(found) * np.sqrt(np.abs(found))).tolist()
    return Estimate(nan) if isnan(value) else Estimate(middle, min(ends), max(ends))


def _of_weights(products: Floats, along: Floats) -> Callable[[Array], tuple[Array, Array, Array, Array]]:
    """Return a function from weights of the batches to ``<m, u>``, its square P, ``|m|^2`` or Q, and ``E |G|^2``."""
    diagonal = np.diag(products)

    def of(w: Array) -> tuple[Array, Array, Array, Array]:
        pairs = 1 - (w**2).sum(axis=-1)  # the weight of all pairs of different batches
        signal = ((w @ along) ** 2 - (w**2) @ along**2) / pairs
        square = (np.einsum("...i,ij,...j->...", w, products, w) - (w**2) @ diagonal) / pairs
        return w @ along, signal, square, w @ diagonal

    return of


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
