"""What a draw rule does to the gradient: the update of M drawn episodes beside the exact one, and beside the others'.

Everything here is in inner products of a batch's episodes, so a draw costs nothing and can be repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agents.common import Estimate, mean, over_rows, ratio
from agents.msgrpo import DRAWS, DrawRule, effective_sample_size
from agents.msgrpo.credit import Batch, Credit, Floats
from research.credit.instrument.fidelity import COSINES, SQUARES
from research.credit.instrument.gradients import EpisodeGradients

REPEATS = 20
"""Draws from each batch, whose mean is one independent value."""


class DrawnBatch(NamedTuple):
    """What is drawn from: one batch's episodes under one method."""

    batch: Batch  # the batch
    credit: Credit  # what the method says of it
    gradients: EpisodeGradients  # of its episodes
    tokens: Floats  # (N,) response tokens of each


@dataclass(frozen=True)
class DrawResult:
    """One rule at one number of draws."""

    rule: str  # the rule's name
    m: int  # how many episodes it was asked for
    drawn: float  # how many different ones it drew on average; a rule may draw fewer
    tokens: float  # response tokens of the update, every draw counted
    cosine: Estimate  # of the update and the reference, the mean over batches and draws
    minus_uniform: Estimate  # the cosine less that of the rule ``uniform`` at the same ``m``, paired by batch
    minus_nonzero: Estimate  # likewise less that of ``uniform_nonzero``, which leaves out what has no signal too
    cosine_per_episode: Estimate  # the cosine divided by the number of draws
    cosine_per_kilotoken: Estimate  # divided by the thousands of tokens of the update
    # of the mean update of many draws from a batch and the reference. Beside the cosine of the rule ``off`` it shows
    # what the rule does to the direction, the noise of drawing left aside
    mean_cosine: Estimate
    variance: Estimate  # of drawing alone: ``E |update - mean|^2 / |mean|^2`` over the draws from a batch
    empty: float  # the share of draws that found nothing to learn from; their cosine counts as 0
    effective_episodes: float  # how many equally weighted episodes the method's draw weights are worth
    reference: str  # "exact" or "others" (the mean gradient of all other batches, all episodes)

    def to_json(self) -> dict[str, Any]:
        return {name: each.to_json() if isinstance(each, Estimate) else each for name, each in vars(self).items()}


def compare_draws(
    batches: Sequence[DrawnBatch],
    rules: Sequence[str],
    sizes: Sequence[int],
    norms: Sequence[float],
    *,
    reference: int = 0,
    reference_name: str = "exact",
    repeats: int = REPEATS,
    seed: int = 0,
) -> list[DrawResult]:
    """Return every rule at every number of draws (``off`` draws all episodes whatever it is).

    Args:
        norms: (batches,) the length of the reference of each batch.
        reference: which of the references in :class:`EpisodeGradients`.
        repeats: draws from each batch.

    Raises:
        ConfigError: no such rule.
    """
    tables = {
        (rule, m): _table(batches, DRAWS.make(rule), m, norms, reference, repeats, (seed, number))
        for number, rule in enumerate(dict.fromkeys([*rules, "uniform", "uniform_nonzero"]))
        for m in sizes
    }
    effective = float(np.mean([effective_sample_size(each.credit.draw_weight) for each in batches]))
    results = []
    for (rule, m), table in tables.items():
        if rule not in rules:
            continue
        minus = {other: table[:, :1] - tables[other, m][:, :1] for other in ("uniform", "uniform_nonzero")}
        results.append(
            DrawResult(
                *(rule, m),
                drawn=float(table[:, 2].mean()),
                tokens=float(table[:, 3].mean()),
                cosine=over_rows(table, mean(0), COSINES),
                minus_uniform=over_rows(minus["uniform"], mean(0)),
                minus_nonzero=over_rows(minus["uniform_nonzero"], mean(0)),
                cosine_per_episode=over_rows(table, ratio(0, 1)),
                cosine_per_kilotoken=over_rows(table / [1, 1, 1, 1000, 1, 1, 1], ratio(0, 3)),
                mean_cosine=over_rows(table, mean(5), COSINES),
                variance=over_rows(table, mean(6), SQUARES),
                empty=float(table[:, 4].mean()),
                effective_episodes=effective,
                reference=reference_name,
            )
        )
    return results


def _table(
    batches: Sequence[DrawnBatch],
    rule: DrawRule,
    m: int,
    norms: Sequence[float],
    reference: int,
    repeats: int,
    seed: tuple[int, ...],
) -> Floats:
    """Return (batches, 7) means over draws: cosine, draws, different episodes, tokens, whether there was nothing; the
    cosine of the draws' mean update; and their variance relative to that mean's squared length."""
    rows = []
    for number, (each, norm) in enumerate(zip(batches, norms, strict=True)):
        weights, found = np.zeros((repeats, len(each.batch))), np.zeros((repeats, 5))
        for repeat in range(repeats):
            drawn = rule.draw(each.batch, each.credit, m, np.random.default_rng((*seed, m, number, repeat)))
            count = len(drawn.indices)
            weights[repeat] = np.bincount(drawn.indices, drawn.scale / max(count, 1), len(each.batch))
            different, tokens = len(set(drawn.indices.tolist())), each.tokens[drawn.indices].sum()
            cosine = each.gradients.cosine(weights[repeat], reference, norm)
            found[repeat] = cosine, count, different, tokens, not count
        together = weights.mean(axis=0)
        square = each.gradients.square(together)
        spread = np.einsum("ri,ij,rj->r", weights, each.gradients.products, weights).mean() - square
        of_mean = each.gradients.cosine(together, reference, norm)
        rows.append([*found.mean(axis=0), of_mean, max(0.0, spread / square) if square > 0 else 0.0])
    return np.array(rows)
