"""ADORA: groups whose successes are short count less (ShadeCloak/ADORA).

``A_i = w_g z_g(R_i)`` for all steps of episode i. The weight ``w_g`` of a group is 1 if its longest success is
longer than its failures are on average, and 0.1 otherwise: what takes long to succeed is worth more. Failures in which
a response was cut off at the token limit don't count in that average; if no others are left, any success is longer.

The authors' code disagrees with itself on groups without a success: 0.1 for language models, 1 for those that see.
``no_success`` chooses, and is 0.1.

Our reading: the length of an episode is the number of response tokens in all of its steps.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, ByReturn, Credit, Trajectory, standardised, within_groups


@configured
class ADORA(ByReturn):
    """The group-normalised return, damped in groups whose successes are short."""

    damping: float = Field(0.1, ge=0)
    """The weight of a group whose longest success isn't longer than its failures are on average."""
    no_success: float = Field(0.1, ge=0)
    """The weight of a group without a success."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages = within_groups(batch, batch.returns(self.discount), standardised)
        for members in batch.groups.values():
            advantages[members] *= self._weight([batch.trajectories[i] for i in members])
        return Credit.per_episode(batch, advantages)

    def _weight(self, group: Sequence[Trajectory]) -> float:
        successes = [each.tokens for each in group if each.success]
        failures = [each.tokens for each in group if not each.success and not each.cut_off.any()]
        if not successes:
            return self.no_success
        return 1.0 if not failures or max(successes) > np.mean(failures) else self.damping
