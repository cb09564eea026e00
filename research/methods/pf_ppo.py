"""PF-PPO: episodes drawn by a filter of their returns, which recent batches choose."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field

from agents.msgrpo import Drawn, Ints, configured, effective_sample_size
from agents.msgrpo.credit import Batch, Credit, Floats, same

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
