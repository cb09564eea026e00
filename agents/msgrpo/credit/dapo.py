"""DAPO's part in credit: the reward for the length of every response, and none for those that were cut off.

``A_i = z_g(R_i)``, with what :class:`Length` pays in the return (arXiv 2503.14476). The other
parts of DAPO are choices elsewhere: ``clip_high = 0.28`` and the filter ``nonzero``, or a task sampler that
refills the groups.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import standardised, within_groups
from agents.msgrpo.credit.batch import Batch, Credit, Floats
from agents.msgrpo.credit.compared import ByReturn
from agents.msgrpo.plugins import Shared, configured


@configured
class Length:
    """Pays for short responses: 0 up to ``L_max - cache`` tokens, then falling to -1 at ``L_max``.

    DAPO's soft overlong punishment (arXiv 2503.14476): ``(L_max - cache - n) / cache`` for n tokens in between.
    """

    cache_share: float = Field(0.2, gt=0, le=1)
    """The share of the longest response within which the reward falls from 0 to -1."""
    max_response_tokens: int = Field(256, ge=1)
    """L_max, the most tokens of a response."""

    shared: ClassVar[Shared] = {"max_response_tokens": "max_response_tokens"}

    def pay(self, batch: Batch) -> list[Floats]:
        cache = self.cache_share * self.max_response_tokens
        lengths = [np.array([len(ids) for ids in each.response_ids], dtype=np.float64) for each in batch.trajectories]
        return [((self.max_response_tokens - cache - each) / cache).clip(-1.0, 0.0) for each in lengths]


@configured
class DAPO(ByReturn, Length):
    """The group-normalised return with a reward for length."""

    mask_truncated: bool = False
    """Give responses that were cut off at the token limit the advantage 0. They still count in the normaliser's Z and
    in their group's mean."""

    shared: ClassVar[Shared] = {**Length.shared, **ByReturn.shared}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        paid = self.pay(batch)
        more = np.array([float((each * self.discount ** np.arange(len(each))).sum()) for each in paid])
        advantages = within_groups(batch, batch.returns(self.discount) + more, standardised)
        metrics = {"length_reward": float(np.concatenate(paid).mean())}
        if not self.mask_truncated:
            return Credit.per_episode(batch, advantages)._replace(metrics=metrics)
        pairs = zip(batch.trajectories, advantages.tolist(), strict=True)
        return Credit.of([np.where(each.cut_off, 0.0, a) for each, a in pairs], metrics=metrics)
