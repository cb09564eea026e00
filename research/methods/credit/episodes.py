"""Credit by what an episode returns or a turn is paid: ADORA, RAE, RiskPO; BEACON, MARSHAL, MT-GRPO; and by trees."""

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    How,
    Scale,
    Step,
    returns_to_go,
    same,
    split_like,
    standardised,
    within_groups,
    within_labels,
    within_steps,
)


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


@configured
class BEACON(ByReturn):
    """The episode's return among its group, plus how near the step is to the next milestone among its segment.

    Milestones (steps with a positive reward) cut an episode into segments, and a later failure takes nothing from what
    led to an earlier one (arXiv 2605.06078; ``migpo/core_migpo.py`` in ZJU-REAL/BEACON): ::

        A_it = (R_i - mean_g R) + w (S_it - mean of S over the group's steps in the same segment)
        S_it = gamma^(m - t) reward of m,   m the step of the next milestone; 0 if none follows
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    scale: Scale = "none"
    """Divides both differences: nothing, or the standard deviation of the set."""
    discount: float = Field(0.99, gt=0, le=1)
    """Gamma, by which a milestone counts less for each step before it."""

    renamed: ClassVar[Shared] = {"decay": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        whole = within_groups(batch, batch.returns(), how)
        shaped, segments = [], []
        for each in batch.trajectories:
            ahead, found = 0.0, np.zeros(len(each))
            for t in range(len(each) - 1, -1, -1):
                found[t] = ahead = float(each.rewards[t]) if each.rewards[t] > 0 else self.discount * ahead
            shaped.append(found)
            before = np.cumsum(each.rewards[:-1] > 0).tolist()  # a segment is told by the milestones before it
            segments += [(each.group, k) for k in (0, *before)]
        steps = split_like(within_labels(segments, np.concatenate(shaped), how), shaped)
        return Credit.of([e + self.step_weight * s for e, s in zip(whole, steps, strict=True)])


@configured
class MARSHAL(ByReturn):
    """Whitened returns-to-go of whitened rewards, with a mean of its own for every seat.

    Over the steps of the batch, in this order: the mean of the seat's rewards is subtracted; rewards are whitened;
    ``G_it``; the mean of the seat's values is subtracted; they are whitened. A seat is a player of a scenario, groups
    play no part (arXiv 2510.15414; thu-nics/MARSHAL).
    """

    means: Literal["steps", "distinct"] = "steps"
    """What is subtracted from a seat's returns-to-go: their mean over steps, or, as the authors do, over the different
    values among them."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        played = batch.trajectories
        seats = [each.seat for each in played for _ in range(len(each))]
        paid = standardised(within_labels(seats, np.concatenate([each.rewards for each in played]), compared))
        to_go = np.concatenate([returns_to_go(each, self.discount) for each in split_like(paid, played)])
        less_mean: How = compared if self.means == "steps" else _less_distinct
        return Credit.of(split_like(standardised(within_labels(seats, to_go, less_mean)), played))


def _less_distinct(values: Floats) -> Floats:
    ordered = np.sort(values)
    distinct = ordered[np.append(True, ~same(ordered[1:], ordered[:-1]))]
    return np.zeros_like(values) if len(distinct) == 1 else values - distinct.mean()


@configured
class MTGRPO(ByReturn):
    """The group-normalised return plus the step's reward among the group's at the same time (arXiv 2505.11821).

    ``A_it = z_g(R_i) + lam z(r_it)``, the second z over the group's episodes that are alive at t.
    """

    turn_weight: float = Field(1.0, ge=0)
    """lam, the weight of the step's reward."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        turns = within_steps(batch, "time", [each.rewards for each in batch.trajectories], standardised)
        return Credit.of([e + self.turn_weight * turn for e, turn in zip(whole, turns, strict=True)])


@configured
class TreeGRPO(ByReturn):
    """The episode's return among those of its tree, plus the same among those of its group (arXiv 2509.21240).

    ``A_it = z_tree(R_i) + z_g(R_i)``; the first part is 0 for an episode that is alone in its tree. Steps that episodes
    share are learnt from with the advantage of each of them, as in the paper.
    """

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns = batch.returns(self.discount)
        trees = [(each.group, i if each.tree is None else each.tree) for i, each in enumerate(batch.trajectories)]
        within = within_labels(trees, returns, standardised)
        return Credit.per_episode(batch, within + within_groups(batch, returns, standardised))


@configured
class AT2PO(ByReturn):
    """What the tree behind a step has come to: the normalised returns at its leaves, carried back step by step.

    A leaf's value is its episode's ``z_g(R_i)`` (population std), a step's value V is a mean of the values of the steps
    that were tried after it, weighted by the softmax of their entropies, ``-mean_k log pi`` in nats, as in the authors'
    script (arXiv 2601.04767).
    """

    value: Literal["child_softmax", "child_mean", "leaf_mean"] = "child_softmax"
    """V of a step: the mean of the steps after it, weighted by the softmax of their entropies, or evenly; or the mean
    of its leaves."""
    advantage: Literal["value", "parent", "root", "both"] = "value"
    """V itself; V less that of the step before; V less that of the whole tree; or the last two together."""

    needs: ClassVar[frozenset[str]] = frozenset({"old_logprobs"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        leaves = within_groups(batch, batch.returns(self.discount), partial(compared, scale="group_std", ddof=0))
        advantages = [np.empty(len(each)) for each in batch.trajectories]
        for indices in batch.groups.values():
            places: dict[Hashable, Step] = {}  # where each step of the tree is first met
            below: dict[Hashable, list[int]] = {None: indices}  # the episodes through each step; None: all of them
            after: dict[Hashable, dict[Hashable, None]] = {}  # the steps that were tried after each step, in order
            paths: dict[int, list[Hashable]] = {}
            for i in indices:
                trajectory = batch.trajectories[i]
                paths[i] = list(trajectory.nodes) or [(i, t) for t in range(len(trajectory))]
                for t, node in enumerate(paths[i]):
                    places.setdefault(node, (i, t))
                    below.setdefault(node, []).append(i)
                    after.setdefault(paths[i][t - 1] if t else None, {})[node] = None
            values: dict[Hashable, float] = {}
            for node in sorted(below, key=lambda node: -1 if node is None else places[node][1], reverse=True):
                following = list(after.get(node, ()))
                if self.value == "leaf_mean" or not following:
                    values[node] = float(np.mean([leaves[i] for i in below[node]]))
                    continue
                weights = np.ones(len(following))
                if self.value == "child_softmax":
                    met = [places[each] for each in following]
                    surprise = np.array([batch.trajectories[i].surprise(t) for i, t in met])
                    weights = np.exp(surprise - surprise.max())
                values[node] = float(np.average([values[each] for each in following], weights=weights))
            for i, path in paths.items():
                for t, node in enumerate(path):
                    value, before, whole = values[node], values[path[t - 1] if t else None], values[None]
                    less = {"value": 0.0, "parent": before, "root": whole, "both": before + whole - value}
                    advantages[i][t] = value - less[self.advantage]
        return Credit.of(advantages)
