"""RAGEN's group filters: which groups an update learns from."""

import math
from typing import Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import Kept, configured, spreads
from agents.msgrpo.credit import Batch, Floats


@configured
class StarPOS:
    """Keep a share of the groups, those of the largest ``std_g``, at least one (RAGEN, arXiv 2504.20073).

    RAGEN trains with ``clip_high = 0.28`` and without a KL term besides.
    """

    share: float = Field(0.25, gt=0, le=1)
    """How many of the groups stay, rounded down."""

    def keep(self, batch: Batch) -> Kept:
        labels = list(batch.groups)
        count = max(1, int(self.share * len(labels) + 1e-9))
        return Kept.of_groups(batch, [labels[g] for g in _largest_first(spreads(batch))[:count]])


@configured
class RAGEN2:
    """Keep groups, the one of the largest ``std_g`` first, until theirs add up to ``mass`` of the total.

    The sum has to reach ``mass * total - slack``. Groups of equal returns never stay; in a batch without any difference
    nothing stays and the update is skipped. The authors (mll-lab-nu/RAGEN) say variance; their code adds up stds.
    """

    mass: float = Field(0.9, gt=0, le=1)
    """Which part of the sum of all groups' std_g those that stay must hold."""
    slack: float = Field(0.01, ge=0)
    """Subtracted from that part, in units of returns."""
    loss_scale: Literal["none", "share", "root"] = "none"
    """Multiply all advantages by the share of the groups that stay, or by its square root, so that few groups make a
    small step."""
    soft: bool = False
    """Leave all groups that differ, and multiply each one's advantages by ``std_g / max_g std_g``, in place of leaving
    groups out."""

    def keep(self, batch: Batch) -> Kept:
        labels, stds = list(batch.groups), spreads(batch)
        chosen = np.flatnonzero(stds).tolist() if self.soft else self._chosen(stds)
        share = len(chosen) / max(1, len(labels))
        scale = {"none": 1.0, "share": share, "root": math.sqrt(share)}[self.loss_scale]
        kept = Kept.of_groups(batch, [labels[g] for g in chosen], scale)
        if not self.soft or not chosen:
            return kept
        factor = dict(zip(labels, (stds / stds.max()).tolist(), strict=True))
        own = np.array([factor[batch.trajectories[index].group] for index in kept.indices])
        return Kept(kept.indices, kept.scale * own)

    def _chosen(self, stds: Floats) -> list[int]:
        wanted, held, chosen = self.mass * float(stds.sum()) - self.slack, 0.0, []
        for g in _largest_first(stds):
            if held >= wanted or stds[g] == 0:
                break
            held += float(stds[g])
            chosen.append(g)
        return chosen if held >= wanted else []


def _largest_first(values: Floats) -> list[int]:
    """Return the places of the values, the largest first, and the earlier first among equals."""
    return np.argsort(-values, kind="stable").tolist()  # type: ignore[no-any-return]
