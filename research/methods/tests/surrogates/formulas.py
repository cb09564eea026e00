"""The surrogates of this folder in plain Python loops; see tests/agents/msgrpo/surrogates/formulas.py."""

import math
from collections.abc import Sequence

from tests.agents.msgrpo.surrogates.formulas import Answer, Data, Formula, clip, ppo_token
from tests.agents.msgrpo.surrogates.ragged import Row, by_differences


def sapo(positive: float = 1.0, negative: float = 1.05) -> Formula:
    def loss(rows: Sequence[Row]) -> float:
        total = 0.0
        for row in rows:
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True):
                tau = positive if a > 0 else negative
                total += -(4 / tau) / (1 + math.exp(-tau * (math.exp(logp - old) - 1))) * a
        return total

    return lambda rows, data: (loss(rows), by_differences(loss, rows))


def nft(rows: Sequence[Row], data: Data) -> Answer:
    """Of ``-log m`` with the gradient straight through ``m = max(x, 1)``: ``-1/m dx``, ``dx = -p rho / (1 - p)``."""
    total, gradient = 0.0, []
    for i, row in enumerate(rows):
        c, p, w = (data[name][i] for name in ("label", "rate", "weight"))
        gradient.append([])
        for logp, old in zip(row.logp, row.old, strict=True):
            rho = math.exp(logp - old)
            m = max((1 - p * rho) / (1 - p), 1.0)
            total += w * (1 - p) * (c * -(logp - old) + (1 - c) * -math.log(m))
            gradient[-1].append(w * (1 - p) * (-c + (1 - c) * p * rho / (1 - p) / m))
    return total, gradient


def p3o(rows: Sequence[Row], data: Data) -> Answer:
    pairs = list(zip(rows, data["coefficient"], strict=True))
    return sum(-c * x for row, c in pairs for x in row.logp), [[-c] * len(row.logp) for row, c in pairs]


def minpro(low: float = 0.8, high: float = 1.2) -> Formula:
    """The gradient of ``-sg(w) A log pi`` is ``-w A``, with the smallest earlier ratio in w."""

    def answer(rows: Sequence[Row], data: Data) -> Answer:
        total, gradient = 0.0, []
        for row in rows:
            ratios = [math.exp(new - old) for new, old in zip(row.logp, row.old, strict=True)]
            gradient.append([])
            for k, (ratio, logp, a) in enumerate(zip(ratios, row.logp, row.advantages, strict=True)):
                weight = clip(min([1.0] if k == 0 else ratios[:k]) * ratio, low, high)
                total += -weight * a * logp
                gradient[-1].append(-weight * a)
        return total, gradient

    return answer


def apo(low: float = 0.2, high: float = 0.2, beta: float = 1e-3) -> Formula:
    def answer(rows: Sequence[Row], data: Data) -> Answer:
        def loss(rows: Sequence[Row]) -> float:
            total = 0.0
            for row, kl_weight, factor in zip(rows, data["kl_weight"], data["length_factor"], strict=True):
                for logp, old, ref, a in zip(row.logp, row.old, row.ref, row.advantages, strict=True):
                    total += ppo_token(math.exp(logp - old), a * (factor if a < 0 else 1.0), low, high)
                    kl = math.exp(ref - logp) - 1 - (ref - logp)
                    total += beta * (kl_weight if a > 0 else 1.0) * kl
            return total

        return loss(rows), by_differences(loss, rows)

    return answer


def llds_term(rows: Sequence[Row], episodes: Sequence[int]) -> float:
    """L: rows of one number in ``episodes`` are one episode's."""
    good = [e for e in dict.fromkeys(episodes) if _mean_advantage(rows, episodes, e) >= 0]
    total = 0.0
    for e in good:
        tokens, lost = 0, 0.0
        for row, own in zip(rows, episodes, strict=True):
            if own != e:
                continue
            tokens += len(row.logp)
            ds = [old - new for new, old in zip(row.logp, row.old, strict=True)]
            if sum(ds) > 0:
                lost += sum(max(0.0, d) for d in ds)
        total += lost / tokens
    return total / len(good) if good else 0.0


def _mean_advantage(rows: Sequence[Row], episodes: Sequence[int], e: int) -> float:
    own = [sum(row.advantages) / len(row.advantages) for row, each in zip(rows, episodes, strict=True) if each == e]
    return sum(own) / len(own)
