"""The policy gradient of a file's advantages beside the exact one, for a policy whose model is in this process."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from agents import Policy
from agents.common import Array, Estimate, over_parts
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


def cosines(dump: Dump, truth: Truth, policy: Policy, true: Sequence[Floats]) -> dict[str, Estimate]:
    """Return the cosines with the exact gradient of the file's, and of what the true advantages give there.

    A turn's prompt is the span before its response alone, as trainers without a history have it. Intervals are over
    groups.
    """
    model, prompts = ScoreModel(policy), _prompts(dump)
    exact = exact_gradient(model, truth.answers, truth.solution, truth.halves)
    groups: Mapping[Any, list[tuple[TokenRow, Any, float]]] = defaultdict(list)
    for rows, own in zip(dump.episodes.values(), true, strict=True):
        for row, a in zip(rows, own.tolist(), strict=True):
            tokens = TokenRow(prompts[_place(row)], row.token_ids or ())
            groups[row.update, row.group].append((tokens, row.advantage, a))
    norm = math.sqrt(max(exact.squared_norm, 0.0))
    return {
        name: _cosine([_gradient(model, group, column) for group in groups.values()], exact.vector, norm)
        for column, name in ((1, "file"), (2, "true advantages"))
    }


def _gradient(model: ScoreModel, group: Sequence[tuple[TokenRow, Any, float]], column: int) -> Array:
    weights = [torch.tensor(turn[column]) for turn in group]
    return model.weighted([turn[0] for turn in group], weights).numpy()


def _cosine(gradients: Sequence[Array], exact: torch.Tensor, norm: float) -> Estimate:
    """Return the cosine of the sum of groups' gradients with the exact one; NaN if either is 0."""
    vectors, along = np.stack(gradients), exact.double().numpy()
    products, with_exact = vectors @ vectors.T, vectors @ along

    def of(weights: Array) -> Array:
        lengths = np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", weights, products, weights), 0.0))
        return np.asarray((weights @ with_exact) / (lengths * norm))

    return over_parts(of, len(vectors), (-1.0, 1.0))
