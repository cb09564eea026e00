"""What a surrogate loss is given: the response tokens of a micro-batch, and numbers per row."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from agents.msgrpo.credit.batch import Batch
    from agents.msgrpo.rows import TrainingRow

Floats = npt.NDArray[np.float64]


class Tokens(NamedTuple):
    """Some response tokens, n of them, of r rows; a row is one step's response, and its tokens stand together.

    Attributes:
        logprobs: (n,) under the model that is trained, temperature applied, in nats; with a gradient.
        old_logprobs: (n,) under the model that sampled.
        advantages: (n,)
        lengths: (r,) how many of the tokens belong to each row.
        ref_logprobs: (n,) under the reference model, for surrogates that need ``"reference"``.
        data: ``{name: (r,)}`` what :meth:`Surrogate.row_data` says of these rows.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    advantages: Tensor
    lengths: Tensor
    ref_logprobs: Tensor | None = None
    data: Mapping[str, Tensor] = {}

    def log_ratio(self) -> Tensor:
        """(n,) ``log pi_theta - log pi_old``."""
        return self.logprobs - self.old_logprobs

    def row_sum(self, values: Tensor) -> Tensor:
        """(r,) the sums of (n,) values over each row's tokens."""
        return values.new_zeros(len(self.lengths)).index_add(0, self.rows(), values)

    def spread(self, values: Tensor) -> Tensor:
        """(n,) each row's value at each of its tokens, from (r,)."""
        return values.repeat_interleave(self.lengths)

    def rows(self) -> Tensor:
        """(n,) which row each token belongs to."""
        return torch.arange(len(self.lengths), device=self.lengths.device).repeat_interleave(self.lengths)


class Surrogate(Protocol):
    """A surrogate loss.

    Attributes:
        needs: words for what it uses beyond the tokens: ``"reference"`` log-probabilities of the model as it was at the
            start; ``"current"`` a pass without a gradient before every optimiser step, whose log-probabilities
            :meth:`row_data` gets.
        bounds: below and above which the log calls a ratio clipped.
    """

    needs: ClassVar[frozenset[str]]

    @property
    def bounds(self) -> tuple[float, float]: ...

    def row_data(
        self, rows: "Sequence[TrainingRow]", batch: "Batch", current: Sequence[Tensor] | None
    ) -> Mapping[str, Floats]:
        """Numbers per row, ``{name: (len(rows),)}``, that :meth:`terms` finds in ``tokens.data``.

        Called once for each iteration with all rows of the update; with ``"current"`` in ``needs`` before every
        optimiser step, with the rows of that step.
        """

    def terms(self, tokens: Tokens) -> Tensor:
        """(n,) the loss of every token, before it is summed and divided by the normaliser's Z."""


class PlainSurrogate:
    """What most surrogates have in common: they need nothing but the tokens."""

    needs: ClassVar[frozenset[str]] = frozenset()

    @property
    def bounds(self) -> tuple[float, float]:
        return 1 - getattr(self, "clip_low", 1.0), 1 + getattr(self, "clip_high", float("inf"))

    def row_data(self, rows: Sequence[Any], batch: Any, current: Sequence[Tensor] | None) -> Mapping[str, Floats]:
        return {}
