"""Direct advantage optimisation's loss: responses as much likelier than before as they are better (arXiv 2412.18279).

``L = 1/2 (A / beta - log(pi_theta(y|s) / pi_ref(y|s)))^2`` per response y, with log-probabilities summed over its
tokens (equation 12 and the code in the supplement of NeurIPS 2025). Its minimum has ``pi_theta`` in proportion to
``pi_ref exp(A / beta)``, the optimum of the expected advantage less ``beta`` times the KL divergence from ``pi_ref``,
but for the normalising constant.

Each token carries an equal share of its response's loss: with ``loss_normalizer = "step"`` the loss is the mean over
responses. Our reading: pi_ref is the model as it was at the start of the run, and a response's advantage is the mean of
its tokens', so that a method that tells tokens apart can be used as well.
"""

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from agents.msgrpo import PlainSurrogate, Tokens, configured


@configured
class DirectAPO(PlainSurrogate):
    """Half the squared difference of ``A / beta`` and the log-ratio of a response to the reference model."""

    beta: float = Field(0.02, gt=0)
    """How much likelihood an advantage is worth: the log-ratio aimed at is A / beta; the paper has 0.01 to 0.02."""

    needs: ClassVar[frozenset[str]] = frozenset({"reference"})

    def terms(self, tokens: Tokens) -> Tensor:
        if tokens.ref_logprobs is None:
            raise ValueError("the direct_apo loss needs the reference model's log-probabilities")
        lengths = tokens.lengths.to(tokens.logprobs.dtype)
        wanted = tokens.row_sum(tokens.advantages) / lengths / self.beta
        log_ratio = tokens.row_sum(tokens.logprobs - tokens.ref_logprobs)
        return tokens.spread((wanted - log_ratio).square() / 2 / lengths)
