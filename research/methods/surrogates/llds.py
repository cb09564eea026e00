"""LLDS: a term that keeps good episodes as likely as they were, on top of any surrogate (arXiv 2512.04220).

``L`` is the mean over the episodes i of the update with ``A_i >= 0`` of

``1 / (tokens of i) sum_t 1[sum_k D_tk > 0] sum_k max(0, D_tk)``  with  ``D = log pi_old - log pi_theta``

over responses t and their tokens k; ``weight`` times it is added to the loss, whatever the normaliser is. At the first
optimiser step of an iteration ``D`` is 0, so it needs two or more (``minibatches`` or ``update_passes``).

Where an episode's steps have different advantages, ``A_i`` is their mean (our reading). The paper's variant that
weighs answer tokens is missing, as its weight was not found.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field
from torch import Tensor

from agents.msgrpo import SURROGATES, ConfigError, Surrogate, Tokens, configured
from agents.msgrpo.credit import Floats

if TYPE_CHECKING:
    from agents.msgrpo import TokenRow
    from agents.msgrpo.credit import Batch


@configured
class LLDS:
    """Another surrogate and the likelihood that good episodes have lost."""

    base: str = "ppo"
    """The surrogate that the term is added to; its settings stand in [surrogate.NAME] as always."""
    weight: float = Field(0.2, ge=0)
    """lambda, what the term is multiplied by."""
    tolerance: float = Field(1e-5, ge=0)
    """A loss of fewer nats, of a token or of a response, is rounding and doesn't count; 0 is the formula itself."""

    def __post_init__(self) -> None:
        if issubclass(SURROGATES.find(self.base), LLDS):
            raise ValueError(f"base = {self.base!r} can't be used: accepted is another surrogate")
        self._base: Surrogate = SURROGATES.make(self.base)

    def compose(self, make: Callable[[str], Surrogate]) -> None:
        """Take the base with the run's settings: ``make(name)`` makes surrogates.

        Raises:
            ConfigError: a base that is told of rows before every optimiser step, of each step's rows alone.
        """
        self._base = make(self.base)
        if "current" in self._base.needs:
            raise ConfigError(
                f"[surrogate.llds] base = {self.base!r} looks at the rows of every optimiser step; accepted are those "
                "that look once"
            )

    @property
    def needs(self) -> frozenset[str]:
        return self._base.needs

    def row_data(
        self, rows: "Sequence[TokenRow]", batch: "Batch", log_ratios: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Return ``share_of_mean``: what a row's lost nats are multiplied by, 0 in episodes of negative advantage."""
        tokens: dict[int, int] = {}
        advantages: dict[int, list[float]] = {}
        for row in rows:
            tokens[row.draw] = tokens.get(row.draw, 0) + len(row.response)
            advantages.setdefault(row.draw, []).append(float(np.mean(row.token_advantages())))
        good = {draw for draw, each in advantages.items() if np.mean(each) >= 0}
        own = [1 / (len(good) * tokens[row.draw]) if row.draw in good else 0.0 for row in rows]
        return {**self._base.row_data(rows, batch, log_ratios), "share_of_mean": np.array(own)}

    def terms(self, tokens: Tokens) -> Tensor:
        return self._base.terms(tokens)

    def added(self, tokens: Tokens) -> Tensor:
        lost = -tokens.log_ratio()
        counts = tokens.row_sum(lost.detach()) > self.tolerance  # (r,)
        nats = tokens.row_sum(lost * (lost > self.tolerance))
        term = self.weight / tokens.share * (tokens.data["share_of_mean"] * counts * nats).sum()
        more = self._base.added(tokens)
        return term if more is None else term + more

    def clipped(self, tokens: Tokens) -> tuple[Tensor, Tensor]:
        return self._base.clipped(tokens)
