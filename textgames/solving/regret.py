"""Learning against losses that others choose: regrets, Hedge, and checks whether a player has no regret.

Losses are rows, one a round, of one number an action; smaller is better. In a repeated game they are minus the payoffs
that every action would have had against what the others did.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

Losses = Sequence[Sequence[float]]
"""``losses[t][a]``: what action ``a`` costs in round ``t``."""


def external_regret(losses: Losses, chosen: Sequence[int]) -> float:
    """``R_T = sum_t l_t(a_t) - min_a sum_t l_t(a)``: what was lost to the best action, had it been played throughout.

    It holds what the others did fixed, and it may be below 0.
    """
    if not chosen:
        return 0.0
    rounds = range(len(chosen))
    paid = sum(losses[t][chosen[t]] for t in rounds)
    return float(paid - min(sum(losses[t][action] for t in rounds) for action in range(len(losses[0]))))


def regret_curve(losses: Losses, chosen: Sequence[int]) -> list[float]:
    """``[R_1, ..., R_T]``: the external regret after every round."""
    return [external_regret(losses[:t], chosen[:t]) for t in range(1, len(chosen) + 1)]


def swap_regret(losses: Losses, chosen: Sequence[int]) -> float:
    """What was lost to the best rule "whenever I played ``a``, play ``f(a)`` instead", over all functions ``f``.

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
    """The external and the swap regret of a player of a matrix game, from how often each pair of actions was played.

    They are what :func:`external_regret` and :func:`swap_regret` tell of the rounds one by one, at a cost that doesn't
    grow with the rounds.

    Args:
        payoffs: ``[own action][the other's]`` -> what the player gets.
        counts: ``{(own action, the other's): how often}``.
    """
    actions = range(len(payoffs))
    gains = [[0.0] * len(payoffs) for _ in actions]  # [what was played][what could have been] -> what more it had paid
    for (own, other), times in counts.items():
        paid = payoffs[own][other]
        for action in actions:
            gains[own][action] += times * (payoffs[action][other] - paid)
    return max(map(sum, zip(*gains, strict=True))), sum([max(row) for row in gains])


def hedge_rate(num_actions: int, rounds: int, loss_range: float) -> float:
    """``eta = sqrt(8 ln d / T) / range``, with which Hedge's expected regret is at most ``range sqrt(T ln d / 2)``.

    (Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games", 2006, theorem 2.2.)
    """
    return math.sqrt(8 * math.log(num_actions) / rounds) / loss_range


def hedge(cumulative_losses: Sequence[float], rate: float) -> tuple[float, ...]:
    """Hedge's probabilities: ``p(a)`` proportional to ``exp(-rate * sum of a's losses so far)``."""
    least = min(cumulative_losses)
    weights = [math.exp(-rate * (loss - least)) for loss in cumulative_losses]
    total = sum(weights)
    return tuple([weight / total for weight in weights])


class NoRegret(NamedTuple):
    """Two checks of one episode; small p-values say that the average regret vanishes.

    They go back to Park et al., "Do LLM agents have regret?" (arXiv 2403.16843). Averages of successive rounds are not
    independent, so the p-values are only indications. The statistic to compare players by is ``R_T / T`` over many
    seeds with its interval.

    Attributes:
        sign_p: of the binomial sign test that ``R_t / t`` falls more often than it rises.
        slope: of ``log R_t`` over ``log t``; below 1 the regret grows more slowly than the rounds.
        slope_p: of the one-sided t-test that the slope is below 1.
    """

    sign_p: float
    slope: float
    slope_p: float


def no_regret_checks(curve: Sequence[float], floor: float = 0.01) -> NoRegret:
    """Check the regrets ``R_1, ..., R_T`` of one episode, as :func:`regret_curve` gives them.

    Args:
        curve: at least three numbers.
        floor: regrets below it, which have no useful logarithm, count as this much.

    Raises:
        ValueError: fewer than three rounds.
    """
    if len(curve) < 3:
        raise ValueError(f"the checks need the regrets of at least three rounds, got {len(curve)}")
    import scipy.stats  # here, since games are to be had without it

    averages = [regret / t for t, regret in enumerate(curve, 1)]
    falls = sum(after < before for before, after in pairwise(averages))
    sign_p = float(scipy.stats.binomtest(falls, len(curve) - 1, alternative="greater").pvalue)
    logs = [math.log(max(regret, floor)) for regret in curve]
    fit = scipy.stats.linregress([math.log(t) for t in range(1, len(curve) + 1)], logs)
    if not fit.stderr > 0:  # the points lie on a line: 0, or undefined where the line is flat
        return NoRegret(sign_p, float(fit.slope), 0.0 if fit.slope < 1 else 1.0)
    slope_p = float(scipy.stats.t.cdf((fit.slope - 1) / fit.stderr, len(curve) - 2))
    return NoRegret(sign_p, float(fit.slope), slope_p)
