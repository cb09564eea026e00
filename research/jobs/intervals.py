"""Confidence intervals that only experiments need, beside those of :mod:`agents.common.intervals`."""

from collections.abc import Sequence

from agents.common.intervals import Estimate

_CONFIDENCE = 0.9500042097  # of 1.96 standard errors, the rounded quantile that recorded results were made with


def share_of(successes: Sequence[float]) -> Estimate:
    """The share of successes, of values 0 and 1, with the score interval of Wilson (1927)."""
    from scipy.stats import binomtest

    tested = binomtest(round(sum(successes)), len(successes))
    low, high = tested.proportion_ci(_CONFIDENCE, "wilson")
    return Estimate(float(tested.statistic), float(low), float(high))
