"""How good the policy gradient is that a batch gives under a method: its direction, its bias, its noise.

With ``G`` the gradient of one batch, ``g`` the exact one and ``u = g / |g|``:

* the cosine of ``G`` and ``g``, batch by batch;
* bias: the cosine of ``E G`` and ``g``, which more episodes would approach;
* variance: ``E |G - E G|^2 / |E G|^2``;
* signal to noise: ``<E G, u>^2 / (E |G|^2 - <E G, u>^2)``, divided by what the batch costs, in episodes or in response
  tokens of the update. Noise here is all that doesn't point along ``g``, bias included.

Squares of means are estimated from products of different batches, which noise doesn't enlarge. Where ``g`` itself is
an estimate from sampled responses, ``|g|^2`` is the product of its two halves for the same reason, so a cosine isn't
pulled towards 0 by the noise of ``g``; its reliability is told beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.common.intervals import Array, Estimate, bootstrap, mean, of_replicates, weights
from agents.msgrpo.credit.batch import Floats


class BatchGradient(NamedTuple):
    """One batch's mean gradient.

    Attributes:
        vector: (size,) float32.
        along: its product with the exact gradient.
        episodes: how many it is the mean of.
        tokens: response tokens of the update.
    """

    vector: Tensor
    along: float
    episodes: float
    tokens: float


@dataclass(frozen=True)
class GradientQuality:
    """The figures at the head of this file.

    Attributes:
        cosine: of a batch's gradient and the exact one, the mean over batches.
        bias_cosine: of the mean gradient and the exact one; 1 for a method without bias in direction.
        variance: of the gradient, relative to its mean's squared length.
        signal_to_noise_per_episode: of a batch, divided by its episodes.
        signal_to_noise_per_token: divided by the response tokens of the update.
    """

    cosine: Estimate
    bias_cosine: Estimate
    variance: Estimate
    signal_to_noise_per_episode: Estimate
    signal_to_noise_per_token: Estimate


def quality(batches: Sequence[BatchGradient], norm: float) -> GradientQuality:
    """What is said of the gradients of some batches; ``norm`` is the exact gradient's."""
    vectors = torch.stack([each.vector for each in batches])
    products = (vectors @ vectors.T).double().numpy()
    along = np.array([each.along for each in batches]) / (norm or np.nan)
    lengths = np.sqrt(np.diag(products))
    cosines = np.divide(along, lengths, out=np.zeros(len(batches)), where=lengths > 0)
    if not norm > 0:
        nothing = Estimate(nan)
        return GradientQuality(nothing, nothing, nothing, nothing, nothing)
    episodes = float(np.mean([each.episodes for each in batches]))
    tokens = float(np.mean([each.tokens for each in batches]))
    return GradientQuality(
        cosine=bootstrap(cosines[:, None], mean(0)),
        bias_cosine=_figure(products, along, _bias_cosine),
        variance=_figure(products, along, _variance),
        signal_to_noise_per_episode=_figure(products, along, lambda *parts: _ratio(*parts) / episodes),
        signal_to_noise_per_token=_figure(products, along, lambda *parts: _ratio(*parts) / tokens),
    )


def _bias_cosine(along: Array, signal: Array, square: Array, total: Array) -> Array:
    return np.clip(along / np.sqrt(square), -1, 1)  # estimates of squares may be too small for a cosine


def _variance(along: Array, signal: Array, square: Array, total: Array) -> Array:
    return np.maximum(total / np.where(square > 0, square, np.nan) - 1, 0.0)


def _ratio(along: Array, signal: Array, square: Array, total: Array) -> Array:
    return np.maximum(signal, 0.0) / (total - signal)


def _figure(products: Floats, along: Floats, of: Callable[[Array, Array, Array, Array], Array]) -> Estimate:
    """A figure of ``<E G, u>``, its square, ``|E G|^2`` and ``E |G|^2``, under bootstrap weights of the batches."""
    count = len(along)
    if count < 2:
        return Estimate(nan)
    diagonal = np.diag(products)

    def parts(w: Array) -> tuple[Array, Array, Array, Array]:
        # squares are of different batches alone: a batch's product with itself holds its noise
        others = 1 - (w**2).sum(axis=-1)
        signal = ((w @ along) ** 2 - (w**2) @ along**2) / others
        square = (np.einsum("...i,ij,...j->...", w, products, w) - (w**2) @ diagonal) / others
        return w @ along, signal, square, w @ diagonal

    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of(*parts(np.full(count, 1 / count))))
        return of_replicates(value, np.asarray(of(*parts(weights(count)))))
