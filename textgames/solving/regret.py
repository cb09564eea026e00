"""Learning against losses that others choose: regrets, and Hedge.

Losses are rows, one a round, of one number an action; smaller is better. In a repeated game they are minus the payoffs
that every action would have had against what the others did.
"""

import math
from collections.abc import Mapping, Sequence

Losses = Sequence[Sequence[float]]
"""``losses[t][a]``: what action ``a`` costs in round ``t``."""


def external_regret(losses: Losses, chosen: Sequence[int]) -> float:
    """Return ``R_T = sum_t l_t(a_t) - min_a sum_t l_t(a)``, the others' play held fixed; it may be below 0."""
    if not chosen:
        return 0.0
    rounds = range(len(chosen))
    paid = sum(losses[t][chosen[t]] for t in rounds)
    return float(paid - min(sum(losses[t][action] for t in rounds) for action in range(len(losses[0]))))


def swap_regret(losses: Losses, chosen: Sequence[int]) -> float:
    """Return what was lost to the best rule "whenever I played ``a``, play ``f(a)`` instead", over all functions ``f``.

    Never below 0 nor below the external regret (Blum and Mansour, "From external to internal regret", 2007).
    """
    return float(
        sum(
            max(0.0, external_regret([losses[t] for t in rounds], [action] * len(rounds)))
            for action in set(chosen)
            for rounds in [[t for t, other in enumerate(chosen) if other == action]]
        )
    )


def regrets_of_counts(payoffs: Losses, counts: Mapping[tuple[int, int], int]) -> tuple[float, float]:
    """Return a player's external and swap regret in a matrix game, from how often each pair of actions was played.

    Payoffs are by ``[own action][the other's]``, counts by ``(own action, the other's)``.
    """
    actions = range(len(payoffs))
    gains = [[0.0] * len(payoffs) for _ in actions]  # [what was played][what could have been] -> what more it had paid
    for (own, other), times in counts.items():
        paid = payoffs[own][other]
        for action in actions:
            gains[own][action] += times * (payoffs[action][other] - paid)
    return max(map(sum, zip(*gains, strict=True))), sum([max(row) for row in gains])


def hedge_rate(num_actions: int, rounds: int, loss_range: float) -> float:
    """Return ``eta = sqrt(8 ln d / T) / range``: Hedge's expected regret is then at most ``range sqrt(T ln d / 2)``.

    (Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games", 2006, theorem 2.2.)
    """
    return math.sqrt(8 * math.log(num_actions) / rounds) / loss_range


def hedge(cumulative_losses: Sequence[float], rate: float) -> tuple[float, ...]:
    """Return Hedge's probabilities: ``p(a)`` proportional to ``exp(-rate * sum of a's losses so far)``."""
    least = min(cumulative_losses)
    weights = [math.exp(-rate * (loss - least)) for loss in cumulative_losses]
    total = sum(weights)
    return tuple([weight / total for weight in weights])
