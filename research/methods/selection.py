"""What an update learns from: RAGEN's group filters and the draw of PF-PPO."""

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field

from agents.msgrpo import Drawn, Ints, Kept, configured, effective_sample_size, spreads
from agents.msgrpo.credit import Batch, Credit, Floats, same


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


Weighing = Literal["pow", "max_min", "max_random"]


@configured
class PFPPO:
    """As many episodes as the batch has, drawn from it with replacement; the advantages are kept as they are.

    Policy filtration (arXiv 2409.06957): the weights look at the returns themselves, and 1e-8 is added to each. As the
    paper does, ``auto`` takes the weights under which returns tell the truth best: those of the largest R² of a linear
    regression of the truth on the returns of recent batches, each weighed within its batch. Our reading: R² is adjusted
    by the effective number of episodes, since the best and the worst of one batch always lie on a line.
    """

    method: Weighing | Literal["auto"] = "pow"
    """The weight of a return: ``|R|^power``; 1 for the batch's highest or lowest return, else 0; or 0.4 for the
    highest, 0.1 for the others; auto: the one of these that has the largest R²."""
    power: float = Field(2.0, ge=0)
    """The exponent of pow."""
    resample_all: bool = True
    """Draw as many episodes as there are, as in the paper; otherwise episodes_drawn of them."""
    truth: Literal["return", "success"] = "return"
    """The truth of auto's regression: the game's own return, if a reward rule pays something else, or success."""
    recent: int = Field(8, ge=1)
    """Batches that R² is taken over."""

    def __post_init__(self) -> None:
        self._recent: list[tuple[list[float], list[float]]] = []

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        returns, by = batch.returns(), self._choose(batch) if self.method == "auto" else self.method
        if not credit.draw_weight.any():  # no episode has an advantage: there is nothing to learn
            return Drawn.plain(np.empty(0, dtype=np.int64))
        weights = self.weights(returns, by)
        drawn: Ints = rng.choice(len(batch), size=len(batch) if self.resample_all else m, p=weights / weights.sum())
        return Drawn.plain(np.sort(drawn))

    def weights(self, returns: Floats, by: Weighing) -> Floats:
        """Return the (N,) weights that the episodes are drawn by, from (N,) returns."""
        if by == "pow":
            return np.abs(returns) ** self.power + 1e-8
        highest = same(returns, returns.max())
        if by == "max_min":
            return np.where(highest | same(returns, returns.min()), 1.0, 0.0) + 1e-8
        return np.where(highest, 0.4, 0.1) + 1e-8

    def _choose(self, batch: Batch) -> Weighing:
        if len(batch):
            ours = [float((each.rewards if each.earned is None else each.earned).sum()) for each in batch.trajectories]
            truth = ours if self.truth == "return" else [float(each.success) for each in batch.trajectories]
            self._recent = [*self._recent, (batch.returns().tolist(), truth)][-self.recent :]
        found = {by: self.r2(by) for by in get_args(Weighing)}
        chosen: Weighing = max(found, key=found.__getitem__)
        self.metrics = {f"pf_ppo_r2_{by}": r2 for by, r2 in found.items()}
        self.metrics |= {f"pf_ppo_by_{by}": float(by == chosen) for by in found}
        return chosen

    def r2(self, by: Weighing) -> float:
        """Return the adjusted R² of the truth by the returns of recent batches, at least 0."""
        if not self._recent:
            return 0.0
        weights = [self.weights(np.array(returns), by) for returns, _ in self._recent]
        w = np.concatenate([each / each.sum() for each in weights])
        x, y = (np.concatenate([each[place] for each in self._recent]) for place in (0, 1))
        n, w = effective_sample_size(w), w / w.sum()
        x, y = x - w @ x, y - w @ y
        spread = (w @ x**2) * (w @ y**2)
        if n <= 2 or spread < 1e-12:
            return 0.0
        explained = float((w @ (x * y)) ** 2 / spread)
        return max(0.0, 1 - (1 - explained) * (n - 1) / (n - 2))

    def state_dict(self) -> dict[str, Any]:
        return {"recent": [list(each) for each in self._recent]} if self._recent else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._recent = [(returns, truth) for returns, truth in state.get("recent", [])]
