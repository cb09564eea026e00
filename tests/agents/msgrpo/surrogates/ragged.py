"""Ragged rows of off-policy tokens in float64, and what a surrogate makes of them, for comparison with plain loops."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from agents.msgrpo.learner.loss import loss_of
from agents.msgrpo.surrogates.tokens import Surrogate, Tokens


class Row(NamedTuple):
    """One response: log-probabilities and advantage of each token."""

    logp: list[float]
    old: list[float]
    ref: list[float]
    advantages: list[float]


def ragged(
    seed: int, rows: int = 7, *, off_policy: float = 0.4, per_token: bool = False, longest: int = 6
) -> list[Row]:
    """Rows of 1 to ``longest`` tokens whose log-ratios have the standard deviation ``off_policy``."""
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        n = rng.randint(1, longest)
        old = [-rng.random() * 3 for _ in range(n)]
        advantage = rng.gauss(0, 1)
        made.append(
            Row(
                [x + rng.gauss(0, off_policy) for x in old],
                old,
                [x + rng.gauss(0, 0.3) for x in old],
                [rng.gauss(0, 1) if per_token else advantage for _ in range(n)],
            )
        )
    return made


class Result(NamedTuple):
    """The loss, its gradient by the log-probability of each token, and the log's sums."""

    loss: float
    gradient: list[list[float]]
    sums: dict[str, float]


def through_loss(
    surrogate: Surrogate,
    rows: Sequence[Row],
    *,
    data: Mapping[str, Sequence[float]] | None = None,
    denominator: float = 1.0,
    row_weights: Sequence[float] | None = None,
    share: float = 1.0,
) -> Result:
    """What :func:`loss_of` says with this surrogate."""
    logp = torch.tensor([x for row in rows for x in row.logp], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([len(row.logp) for row in rows])

    def flat(name: str) -> torch.Tensor:
        return torch.tensor([x for row in rows for x in getattr(row, name)], dtype=torch.float64)

    told = {name: torch.tensor(values, dtype=torch.float64) for name, values in (data or {}).items()}
    tokens = Tokens(logp, flat("old"), flat("advantages"), lengths, flat("ref"), told, share)
    weights = None if row_weights is None else tokens.spread(torch.tensor(row_weights, dtype=torch.float64))
    result = loss_of(tokens, surrogate, denominator, weights=weights)
    result.loss.backward()
    assert logp.grad is not None
    return Result(result.loss.item(), [part.tolist() for part in logp.grad.split(lengths.tolist())], result.sums)


def by_differences(loss: Callable[[Sequence[Row]], float], rows: Sequence[Row], h: float = 1e-6) -> list[list[float]]:
    """The gradient of a plain function of the rows, by central differences."""
    gradient = []
    for i, row in enumerate(rows):
        gradient.append([])
        for k in range(len(row.logp)):
            sides = []
            for shift in (h, -h):
                moved = [*row.logp[:k], row.logp[k] + shift, *row.logp[k + 1 :]]
                sides.append(loss([*rows[:i], row._replace(logp=moved), *rows[i + 1 :]]))
            gradient[-1].append((sides[0] - sides[1]) / (2 * h))
    return gradient


def flat(gradient: Sequence[Sequence[float]]) -> torch.Tensor:
    return torch.tensor([x for row in gradient for x in row], dtype=torch.float64)
