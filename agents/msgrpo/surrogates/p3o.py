"""P3O: every two episodes of a group are compared with each other (pairwise PPO, arXiv 2310.00212).

A pair's gradient is ``(R_i - R_j) grad(l_i - l_j) / 2``, where ``l`` is the log-probability of a whole episode, summed
over its steps. The paper's importance weights and its separate and joint clipping were not found, so this is our
reading, of its form on policy. All ordered pairs of a group of n, divided by n - 1, give episode i the coefficient

``1 / (n - 1) sum_{j != i} (R_i - R_j)``

on the gradient of ``l_i``: that of RLOO, where all episodes are in the update and ``loss_normalizer = "episode"``.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor

from agents.msgrpo.plugins import Shared, configured
from agents.msgrpo.surrogates.tokens import Floats, PlainSurrogate, Tokens

if TYPE_CHECKING:
    from agents.msgrpo.credit.batch import Batch
    from agents.msgrpo.rows import TrainingRow


@configured
class P3O(PlainSurrogate):
    """``-c_i log pi`` with the coefficient of the episode's pairs: the credit only decides what is drawn.

    Pairs are those of the episodes in the update, so ``episode_sampling = "off"`` gives all of a group. A KL term is
    the run's ``kl_coefficient``, in place of one in R.
    """

    off_policy: bool = False
    """Multiply each pair's difference by ``sg(clip(exp(l_i + l_j - old_i - old_j), 1 - clip_low, 1 + clip_high))``,
    for which a pass before every optimiser step tells the episodes' present log-probabilities."""
    clip_low: float = Field(0.2, ge=0, le=1)
    """The pair's ratio is clipped below at 1 - clip_low."""
    clip_high: float = Field(0.2, ge=0)
    """The pair's ratio is clipped above at 1 + clip_high."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""
    minibatches: int = 1
    """Optimiser steps per pass: the run's setting. The ratio of whole episodes needs all steps of each in one."""

    shared: ClassVar[Shared] = {
        "clip_low": "clip_low",
        "clip_high": "clip_high",
        "discount": "discount",
        "minibatches": "minibatches",
    }

    @model_validator(mode="after")
    def _whole_episodes(self) -> "P3O":
        if self.off_policy and self.minibatches != 1:
            raise ValueError(
                f"off_policy = true with minibatches = {self.minibatches}: a minibatch holds some steps of each "
                "episode, and the ratio needs all; accepted: minibatches = 1 (with update_passes of 2 or more)"
            )
        return self

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"current"}) if self.off_policy else frozenset()

    def row_data(
        self, rows: "Sequence[TrainingRow]", batch: "Batch", log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """``coefficient`` c_i of each row's episode, times its draw's scale."""
        returns = batch.returns(self.discount)
        present: dict[int, float] = {}  # draw -> l_i - old_i
        trajectory_of: dict[int, int] = {}
        for number, row in enumerate(rows):
            moved = 0.0 if log_ratios is None else float(log_ratios[number].sum())
            present[row.draw] = present.get(row.draw, 0.0) + moved
            trajectory_of[row.draw] = row.trajectory
        groups: dict[Hashable, list[int]] = {}
        for draw, trajectory in trajectory_of.items():
            groups.setdefault(batch.trajectories[trajectory].group, []).append(draw)
        coefficients: dict[int, float] = {}
        for draws in groups.values():
            own = returns[[trajectory_of[draw] for draw in draws]]
            moved_by = np.array([present[draw] for draw in draws])
            coefficients.update(zip(draws, self._of_pairs(own, moved_by).tolist(), strict=True))
        return {"coefficient": np.array([coefficients[row.draw] * row.scale for row in rows])}

    def terms(self, tokens: Tokens) -> Tensor:
        return -tokens.spread(tokens.data["coefficient"]) * tokens.logprobs

    def _of_pairs(self, returns: Floats, moved: Floats) -> Floats:
        """(n,) the coefficients of a group's episodes, from (n,) returns and (n,) log-ratios of whole episodes."""
        differences = returns[:, None] - returns[None, :]
        if self.off_policy:  # the exponent is limited as well, so that nothing overflows on the way to the clip
            ratios = np.exp((moved[:, None] + moved[None, :]).clip(-50, 50))
            differences = differences * ratios.clip(1 - self.clip_low, 1 + self.clip_high)
        result: Floats = differences.sum(1) / max(1, len(returns) - 1)
        return result
