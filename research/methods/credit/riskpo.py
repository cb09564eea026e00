"""RiskPO: a mixed value-at-risk in place of the mean (arXiv 2510.00911; RTkenny/RiskPO).

Groups are bundled by ``B``. The m-th score of a bundle is ``S_m``, the sum of the m-th return of each of its groups.
Two quantiles of such scores are tracked, ``lo`` at the level ``a = 0.2`` and ``hi`` at ``b = 0.9``, and then::

    tail_m    = -max(lo - S_m, 0) / a
    middle_m  = (max(S_m - lo, 0) - max(S_m - hi, 0) + lo - hi) / (b - a)
    A         = (1.5 tail_m + middle_m) / 2.5 / std(S) / std_g(R)

for all steps of the m-th episode of every group of the bundle. Standard deviations are sample ones, and 1 is taken for
below 0.001. No advantage is above 0: what is best is only blamed least, and groups of equal returns are blamed, too.

The quantiles begin as those of the first batch; every later batch first moves them,
``q += 0.1 (level - mean 1[S < q])``. They go into checkpoints.

Our reading: the paper bundles five groups because its returns are 0 or 1; returns of games are graded, so bundles are
of one group here unless ``groups_per_bundle`` says otherwise. The sums of a last bundle of fewer groups are scaled up
to the full number. Episodes beyond the smallest group of a bundle get 0, as in the code.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Floats

_SMALLEST_STD = 1e-3


@configured
class RiskPO(ByReturn):
    """The mixed value-at-risk of bundled returns."""

    groups_per_bundle: int = Field(1, ge=1)
    """B, the groups whose returns are added up to one score; the paper's 5 is for returns of 0 and 1."""
    low: float = Field(0.2, gt=0, lt=1)
    """Level of the lower quantile."""
    high: float = Field(0.9, gt=0, lt=1)
    """Level of the upper quantile."""
    tail_weight: float = Field(1.5, ge=0)
    """Weight of what lies below the lower quantile, if what lies between the two has 1."""
    rate: float = Field(0.1, gt=0)
    """How far a batch moves the tracked quantiles, in units of the return."""

    @model_validator(mode="after")
    def _check_levels(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} is not below high = {self.high}: accepted is low < high")
        return self

    def __post_init__(self) -> None:
        self._quantiles: list[float] | None = None

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns = batch.returns(self.discount)
        groups = list(batch.groups.values())
        size = self.groups_per_bundle
        bundles = [groups[start : start + size] for start in range(0, len(groups), size)]
        scores = [self._scores(bundle, returns) for bundle in bundles]
        low, high = self._track(np.concatenate(scores))
        advantages = np.zeros(len(batch))
        for bundle, sums in zip(bundles, scores, strict=True):
            tail = -np.maximum(low - sums, 0) / self.low
            middle = np.maximum(sums - low, 0) - np.maximum(sums - high, 0) + low - high
            mixed = (self.tail_weight * tail + middle / (self.high - self.low)) / (self.tail_weight + 1)
            for group in bundle:
                advantages[group[: len(sums)]] = mixed / _std(sums) / _std(returns[group])
        credit = Credit.per_episode(batch, advantages)
        return credit._replace(metrics={"riskpo_low": low, "riskpo_high": high})

    def state_dict(self) -> dict[str, Any]:
        """Return the tracked quantiles."""
        return {"quantiles": self._quantiles}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the tracked quantiles."""
        self._quantiles = state["quantiles"]

    def _scores(self, bundle: list[list[int]], returns: Floats) -> Floats:
        """Return (n,) the sums of the m-th returns, n being the size of the smallest group."""
        count = min(map(len, bundle))
        sums: Floats = np.sum([returns[group[:count]] for group in bundle], axis=0)
        return sums * (self.groups_per_bundle / len(bundle))

    def _track(self, scores: Floats) -> tuple[float, float]:
        levels = (self.low, self.high)
        if self._quantiles is None:
            self._quantiles = [float(np.quantile(scores, level)) for level in levels]
        else:
            self._quantiles = [
                q + self.rate * (level - float(np.mean(scores < q)))
                for q, level in zip(self._quantiles, levels, strict=True)
            ]
        low, high = self._quantiles
        return low, high


def _std(values: Floats) -> float:
    """Return the sample standard deviation, or 1 if it is next to nothing."""
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return std if std >= _SMALLEST_STD else 1.0
