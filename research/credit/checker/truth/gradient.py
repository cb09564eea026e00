"""The policy gradient of a file's advantages beside the exact one, for a policy whose model is in this process."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from agents import Policy
from agents.common import Array, Estimate, over_parts, over_rows, ratio
from agents.msgrpo import TokenRow
from agents.msgrpo.credit import Floats
from research.credit.checker.rows import Dump
from research.credit.instrument.exact.gradient import exact_gradient
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.gradients.scores import ScoreModel, why_no_gradient


def why_not(dump: Dump, policy: Policy) -> str | None:
    """Return why there is no gradient to compare; ``None`` if there is one."""
    if (reason := why_no_gradient(policy)) is not None:
        return reason
    if not dump.has("token_ids") or not _prompts(dump).keys() >= set(map(_place, dump.responses)):
        return "gradients take the token_ids of each response and of a prompt or observation for each turn"
    return None


def _place(row: Any) -> tuple[Any, ...]:
    return row.update, row.episode, row.turn


def _prompts(dump: Dump) -> dict[tuple[Any, ...], tuple[int, ...]]:
    return {_place(row): row.token_ids for row in dump.rows if row.kind in ("prompt", "observation") and row.token_ids}


class Part(NamedTuple):
    """Some turns' part of the gradient along the exact one; intervals are over groups."""

    turns: str
    number: int
    share: Estimate  # of the file's whole gradient, along the exact one
    bias: Estimate  # its share less that of the true advantages on the same episodes
    variance: Estimate  # over groups, in times that of the true advantages, both scaled to one whole


class Gradients(NamedTuple):
    """The policy gradient of a file beside the exact one."""

    cosines: dict[str, Estimate]  # with the exact gradient: of the file's, and of what the true advantages give there
    parts: list[Part]  # by turn, and by length of episode


def gradients(dump: Dump, truth: Truth, policy: Policy, true: Sequence[Floats]) -> Gradients:
    """Compare the gradient of the file's advantages, and that of the true ones on its episodes, with the exact one.

    A turn's prompt is the span before its response alone, as trainers without a history have it.
    """
    model, prompts = ScoreModel(policy), _prompts(dump)
    exact = exact_gradient(model, truth.answers, truth.solution, truth.halves)
    groups, cells = dict[Any, int](), dict[tuple[int, int], int]()
    turns: Mapping[tuple[int, int], list[tuple[TokenRow, Any, float]]] = defaultdict(list)
    for rows, own in zip(dump.episodes.values(), true, strict=True):
        for row, a in zip(rows, own.tolist(), strict=True):
            group = groups.setdefault((row.update, row.group), len(groups))
            cell = cells.setdefault((row.turn, len(rows)), len(cells))
            tokens = TokenRow(prompts[_place(row)], row.token_ids or ())
            turns[group, cell].append((tokens, row.advantage, a))
    whole, along = np.zeros((2, len(groups), model.size)), np.zeros((2, len(groups), len(cells)))
    direction = exact.vector.double().numpy()
    for (group, cell), these in turns.items():
        for column in (0, 1):
            weights = [torch.tensor(one[1 + column]) for one in these]
            vector = model.weighted([one[0] for one in these], weights).numpy()
            whole[column, group] += vector
            along[column, group, cell] = vector @ direction
    norm, told = math.sqrt(max(exact.squared_norm, 0.0)), ("file", "true advantages")
    return Gradients(
        {name: _cosine(each, direction, norm) for name, each in zip(told, whole, strict=True)},
        _parts(along, cells, Counter(cell for (_, cell), these in turns.items() for _ in these)),
    )


def _parts(along: Array, cells: Mapping[tuple[int, int], int], numbers: Mapping[int, int]) -> list[Part]:
    """Return the parts; ``along`` is (2, groups, cells), and a cell is a turn of episodes of one length."""
    found = []
    for column, name in ((0, "turn {}"), (1, "of {} turns")):
        for value in sorted({cell[column] for cell in cells}):
            chosen = [number for cell, number in cells.items() if cell[column] == value]
            sums = np.concatenate([along[:, :, chosen].sum(axis=2), along.sum(axis=2)]).T  # (groups, 4)
            squares = np.concatenate([sums, sums[:, :2] ** 2], axis=1)

            def bias(means: Array) -> Array:
                return np.asarray(means[..., 0] / means[..., 2] - means[..., 1] / means[..., 3])

            def log_variance(means: Array) -> Array:
                spread = (means[..., 4:6] - means[..., :2] ** 2) / means[..., 2:4] ** 2
                return np.asarray(np.log(spread[..., 0] / spread[..., 1]))

            # the logarithm of a ratio of variances is nearer to normal than the ratio
            share, less, log = (over_rows(squares, of) for of in (ratio(0, 2), bias, log_variance))
            low, high = (None if end is None else float(np.exp(end)) for end in log[1:])
            times = Estimate(float(np.exp(log.value)), low, high)
            found.append(Part(name.format(value), sum(numbers[one] for one in chosen), share, less, times))
    return found


def _cosine(vectors: Array, along: Array, norm: float) -> Estimate:
    """Return the cosine of the sum of groups' gradients with the exact one; NaN if either is 0."""
    products, with_exact = vectors @ vectors.T, vectors @ along

    def of(weights: Array) -> Array:
        lengths = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", weights, products, weights), 0.0))
        return np.asarray((weights @ with_exact) / (lengths * norm))

    return over_parts(of, len(vectors), (-1.0, 1.0))
