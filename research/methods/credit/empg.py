"""EMPG: entropy-modulated policy gradients, in which confident steps count more (arXiv 2509.09265).

It modulates the advantages of any other method. With ``H_it`` the mean entropy of the tokens of a response::

    h_it = (H_it - min H) / (max H - min H + 1e-8)      over all steps of the batch
    g_it = exp(-h_it) / mean of exp(-h) over the batch
    A'_it = A_it g_it + zeta exp(-h_i,t+1)              without the bonus at an episode's last step

less the mean of ``A'`` over all steps. The bonus rewards steps that lead if the policy is sure of what to do. So
``g`` has mean 1, and at zeta 0 a batch of equal entropies keeps its centred advantages.

Where the base method tells tokens apart, a step's ``g`` and bonus are those of all its tokens, and a step counts in the
mean with the mean of its tokens (our reading; the method knows one advantage per step).
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, Credit, Floats, StepCredit
from research.methods.credit.composed import Composed


@configured
class EMPG(Composed):
    """Another method's advantages, larger if the policy was sure."""

    zeta: float = Field(0.05, ge=0)
    """Weight of the bonus for what a step leads to."""

    adds: ClassVar[frozenset[str]] = frozenset({"entropies"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        base = self._method.assign(batch, rng)
        entropies = [_entropies(each.entropies) for each in batch.trajectories]
        everything = np.concatenate(entropies)
        least, most = everything.min(), everything.max()
        sureness = [np.exp(-(each - least) / (most - least + 1e-8)) for each in entropies]
        mean = np.concatenate(sureness).mean()
        modulated = [
            _modulated(advantages, sure / mean, np.append(self.zeta * sure[1:], 0.0))
            for advantages, sure in zip(base.advantages, sureness, strict=True)
        ]
        level = float(np.concatenate([_per_step(each) for each in modulated]).mean())
        advantages: list[StepCredit] = [
            each - level if isinstance(each, np.ndarray) else [tokens - level for tokens in each] for each in modulated
        ]
        # what a critic or a reward model of the base method learns by stays
        return base._replace(advantages=advantages, draw_weight=Credit.of(advantages).draw_weight)


def _modulated(advantages: StepCredit, factors: Floats, bonus: Floats) -> StepCredit:
    if isinstance(advantages, np.ndarray):
        return advantages * factors + bonus
    return [tokens * g + b for tokens, g, b in zip(advantages, factors.tolist(), bonus.tolist(), strict=True)]


def _per_step(advantages: StepCredit) -> Floats:
    if isinstance(advantages, np.ndarray):
        return advantages
    return np.array([tokens.mean() if len(tokens) else 0.0 for tokens in advantages])


def _entropies(known: Floats | None) -> Floats:
    if known is None:
        raise ValueError('credit = "empg" needs entropies, and this batch has none')
    return known
