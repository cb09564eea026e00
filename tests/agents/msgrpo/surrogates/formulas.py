"""The surrogates again, in plain Python loops from their formulas: the summed loss and its gradient token by token.

``(rows, data) -> (loss, gradient)``, not divided by any Z. Gradients are by hand where a formula stops them, and by
central differences of the loss where it doesn't. ``data`` holds what a surrogate says of each row.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from tests.agents.msgrpo.surrogates.ragged import Row, by_differences

Data = Mapping[str, Sequence[float]]


Answer = tuple[float, list[list[float]]]


Formula = Callable[[Sequence[Row], Data], Answer]


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def ppo_token(ratio: float, a: float, low: float, high: float, dual: float = math.inf) -> float:
    objective = min(ratio * a, clip(ratio, 1 - low, 1 + high) * a)
    return -max(objective, dual * a) if a < 0 else -objective


def ppo(low: float = 0.2, high: float = 0.2, dual: float = math.inf) -> Formula:
    def loss(rows: Sequence[Row]) -> float:
        return sum(
            ppo_token(math.exp(logp - old), a, low, high, dual)
            for row in rows
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True)
        )

    return lambda rows, data: (loss(rows), by_differences(loss, rows))


def gspo(low: float = 3e-4, high: float = 4e-4) -> Formula:
    """The paper's sequence form, times the length: one ratio, one clip and one advantage for a response.

    The mean over the response's tokens, which its normaliser takes, divides by the length again.
    """

    def loss(rows: Sequence[Row]) -> float:
        total = 0.0
        for row in rows:
            s = math.exp(sum(new - old for new, old in zip(row.logp, row.old, strict=True)) / len(row.logp))
            total += len(row.logp) * ppo_token(s, row.advantages[0], low, high)
        return total

    return lambda rows, data: (loss(rows), by_differences(loss, rows))


def cispo(low: float = 0.8, high: float = 1.2) -> Formula:
    """The gradient of ``-sg(w) A log pi`` is ``-w A``."""

    def answer(rows: Sequence[Row], data: Data) -> Answer:
        total, gradient = 0.0, []
        for row in rows:
            gradient.append([])
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True):
                weight = clip(math.exp(logp - old), low, high)
                total += -weight * a * logp
                gradient[-1].append(-weight * a)
        return total, gradient

    return answer
