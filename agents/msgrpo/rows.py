"""One step of a drawn episode, as the update sees it."""

from collections.abc import Sequence
from typing import NamedTuple

from agents.turn import Allowed


class TokenRow(NamedTuple):
    """One step as tokens. The response's tokens are those that are scored; neither part is empty.

    ``allowed`` says which tokens might stand at each of the response's, where not all might: their probabilities,
    entropies and those of a reference are renormalised over them. Rows that differ in it alone are different.
    """

    prompt: tuple[int, ...]
    response: tuple[int, ...]
    allowed: Allowed | None = None


class TrainingRow(NamedTuple):
    """One step of a drawn episode.

    Attributes:
        tokens: its prompt and response.
        logprobs: of the response's tokens, as sampled; ``None`` where the engine doesn't tell.
        advantage: of all its tokens, or one for each response token.
        draw: which draw of an episode the step belongs to; an episode drawn twice is in the batch twice.
        step: the number of the step in its trajectory.
        trajectory: the number of the trajectory in the batch that the credit was assigned to.
        scale: what the draw and the filter multiplied its advantages by, which is in them already; for surrogates
            that don't use advantages.
    """

    tokens: TokenRow
    logprobs: tuple[float, ...] | None
    advantage: float | tuple[float, ...]
    draw: int
    step: int
    trajectory: int = 0
    scale: float = 1.0

    def token_advantages(self) -> Sequence[float]:
        """The advantage of every response token."""
        each = self.advantage
        return each if isinstance(each, tuple) else (each,) * len(self.tokens.response)
