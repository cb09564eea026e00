"""Credit by trees, whose episodes share steps: Tree-GRPO and AT2PO, for the sampler ``tree``."""

from collections.abc import Hashable
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from agents.msgrpo import compared, configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Step, standardised, within_groups, within_labels


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
