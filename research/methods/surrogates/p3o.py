"""P3O: every two episodes of a group are compared with each other (pairwise PPO, arXiv 2310.00212; thwu1/trlx).

A pair's gradient is ``q w grad(l_i - l_j) / 2`` with ``q = R_i - R_j``, if ``l`` is the log-probability of a whole
episode, summed over its steps, and ``w`` the ratio of both episodes, ``exp(l_i + l_j - old_i - old_j)``, kept between
``1 / ratio_limit`` and ``ratio_limit``. Both are clipped jointly (P3O-V2): a pair whose ``l_i - l_j`` has already moved
by more than ``clip`` in the direction of ``q`` has no gradient. Limits are those of the first author's code.

All ordered pairs of a group of n, divided by n - 1, give episode i the coefficient ``1 / (n - 1) sum_{j != i} q w`` on
the gradient of ``l_i``. On policy it is that of RLOO, if all episodes are in the update and ``loss_normalizer =
"episode"``. Our reading: groups of more than two episodes, and the run's ``kl_coefficient`` in place of a KL term in R.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field, model_validator
from torch import Tensor

from agents.msgrpo import PlainSurrogate, Shared, Tokens, configured
from agents.msgrpo.credit import Floats

if TYPE_CHECKING:
    from agents.msgrpo import TokenRow
    from agents.msgrpo.credit import Batch


@configured
class P3O(PlainSurrogate):
    """``-c_i log pi`` with the coefficient of the episode's pairs: the credit only decides what is drawn.

    Pairs are those of the episodes in the update, so ``episode_sampling = "off"`` gives all of a group.
    """

    off_policy: bool = False
    """Weigh and clip pairs by how far their episodes have moved, which a pass before every optimiser step tells. At an
    iteration's first step nothing has; false takes every step for such a one."""
    clip: float = Field(0.2, ge=0)
    """How far, in nats, the difference of a pair's log-probabilities may move its way before its gradient ends."""
    ratio_limit: float = Field(10.0, ge=1)
    """A pair's ratio is at most this, and at least 1 / ratio_limit."""
    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in an episode's return."""
    minibatches: int = 1
    """Optimiser steps per pass: the run's setting. The ratio of whole episodes needs all steps of each in one."""

    shared: ClassVar[Shared] = {"discount": "discount", "minibatches": "minibatches"}

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
        self, rows: "Sequence[TokenRow]", batch: "Batch", log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Return ``coefficient`` c_i of each row's episode, times its draw's scale."""
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
        """Return (n,) the coefficients of a group's episodes, from (n,) returns and (n,) log-ratios of whole
        episodes."""
        differences = returns[:, None] - returns[None, :]
        if self.off_policy:
            limit = np.log(self.ratio_limit)
            differences *= np.exp((moved[:, None] + moved[None, :]).clip(-limit, limit))
            differences *= np.sign(differences) * (moved[:, None] - moved[None, :]) <= self.clip
        result: Floats = differences.sum(1) / max(1, len(returns) - 1)
        return result
