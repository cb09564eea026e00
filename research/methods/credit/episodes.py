"""Credit by episode, one advantage for all steps: ADORA, RAE and RiskPO."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Floats, standardised, within_groups


@configured
class ADORA(ByReturn):
    """The group-normalised return, damped in groups whose successes are short (ShadeCloak/ADORA).

    ``A_i = w_g z_g(R_i)``, with ``w_g = 1`` if the longest success of the group is longer than its failures are on
    average. Failures with a response that was cut off don't count; without any other every success is longer.
    """

    damping: float = Field(0.1, ge=0)
    """The weight of a group whose longest success isn't longer than its failures are on average."""
    no_success: float = Field(0.1, ge=0)
    """The weight of a group without a success."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages = within_groups(batch, batch.returns(self.discount), standardised)
        for members in batch.groups.values():
            group = [batch.trajectories[i] for i in members]
            successes = [each.tokens for each in group if each.success]
            failures = [each.tokens for each in group if not each.success and not each.cut_off.any()]
            if not successes:
                advantages[members] *= self.no_success
            elif failures and max(successes) <= np.mean(failures):
                advantages[members] *= self.damping
        return Credit.per_episode(batch, advantages)


@configured
class RAE(ByReturn):
    """The return less the running mean of its seat's returns, for self-play (SPIRAL, arXiv 2506.24119).

    ``A_i = R_i - b`` with the ``b`` of the seat as it was before this episode, then ``b <- 0.95 b + 0.05 R_i``, episode
    by episode. As ``b`` doesn't contain the episode's own return, the gradient stays unbiased.
    """

    decay: float = Field(0.95, ge=0, lt=1)
    """What stays of a seat's mean when an episode is added to it."""

    def __post_init__(self) -> None:
        self._means: dict[tuple[str, str], float] = {}  # a seat is a player of a scenario

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages = np.zeros(len(batch))
        for i, trajectory in enumerate(batch.trajectories):
            mean, value = self._means.get(trajectory.seat, 0.0), trajectory.returned(self.discount)
            advantages[i] = value - mean
            self._means[trajectory.seat] = self.decay * mean + (1 - self.decay) * value
        metrics = {f"baseline_{'_'.join(filter(None, seat))}": mean for seat, mean in self._means.items()}
        return Credit.per_episode(batch, advantages)._replace(metrics=metrics)

    def state_dict(self) -> dict[str, Any]:
        return {"means": [(*seat, mean) for seat, mean in self._means.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._means = {(scenario, player): mean for scenario, player, mean in state["means"]}


@configured
class RiskPO(ByReturn):
    """The mixed value-at-risk of bundled returns (arXiv 2510.00911; RTkenny/RiskPO).

    ``S_m`` is the sum of the m-th returns of a bundle's groups. Quantiles of such scores are tracked, ``lo`` at the
    level ``a`` and ``hi`` at ``b``, by ``q += rate (level - mean 1[S < q])``, from those of the first batch::

        tail_m    = -max(lo - S_m, 0) / a
        middle_m  = (max(S_m - lo, 0) - max(S_m - hi, 0) + lo - hi) / (b - a)
        A         = (1.5 tail_m + middle_m) / 2.5 / std(S) / std_g(R)

    A group alone in its bundle is divided once, as both deviations are the same. No advantage is above 0: the best is
    blamed least, and groups of equal returns are blamed, too. With returns of 0 and 1 and bundles of one both quantiles
    are 0 as long as fewer than a tenth succeed, and no episode gets an advantage.
    """

    groups_per_bundle: int = Field(5, ge=1)
    """B, the groups whose returns are added up to one score."""
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
        returns, groups, size = batch.returns(self.discount), list(batch.groups.values()), self.groups_per_bundle
        bundles = [groups[start : start + size] for start in range(0, len(groups), size)]
        scores: list[Floats] = []
        for bundle in bundles:
            count = min(map(len, bundle))  # episodes beyond the smallest group get 0, as in the authors' code
            sums = np.sum([returns[group[:count]] for group in bundle], axis=0)
            scores.append(sums * (size / len(bundle)))  # the last bundle may have fewer groups
        everyone, levels = np.concatenate(scores), (self.low, self.high)
        if self._quantiles is None:
            self._quantiles = [float(np.quantile(everyone, level)) for level in levels]
        else:
            known = zip(self._quantiles, levels, strict=True)
            self._quantiles = [q + self.rate * (level - float(np.mean(everyone < q))) for q, level in known]
        low, high = self._quantiles
        advantages = np.zeros(len(batch))
        for bundle, sums in zip(bundles, scores, strict=True):
            tail = -np.maximum(low - sums, 0) / self.low
            middle = np.maximum(sums - low, 0) - np.maximum(sums - high, 0) + low - high
            mixed = (self.tail_weight * tail + middle / (self.high - self.low)) / (self.tail_weight + 1)
            for group in bundle:
                own = _std(returns[group]) if len(bundle) > 1 else 1.0
                advantages[group[: len(sums)]] = mixed / _std(sums) / own
        return Credit.per_episode(batch, advantages)._replace(metrics={"riskpo_low": low, "riskpo_high": high})

    def state_dict(self) -> dict[str, Any]:
        return {"quantiles": self._quantiles}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._quantiles = state["quantiles"]


def _std(values: Floats) -> float:
    """Return the sample standard deviation, or 1 if it is next to nothing, as in the authors' code."""
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return std if std >= 1e-3 else 1.0
