"""Normalisers: divisors of the summed loss of an optimiser step.

A minibatch holds some steps of every episode rather than all steps of some; its share of the episodes is its share of
the steps. So each minibatch's loss is an estimate of the whole batch's, for every normaliser.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from pydantic import Field

from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.plugins import Method, Registry, Shared, configured


class Weighing(NamedTuple):
    """Z, which divides the sum, and one factor for all tokens of each row of a minibatch; ``None`` if all are 1."""

    denominator: float
    row_weights: Sequence[float] | None = None


class Normalizer(Method, Protocol):
    """A way of making one loss of many tokens'."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        """Weigh the tokens of one minibatch, which has the rows numbered ``part`` of the whole update."""


class PerToken:
    """The mean over the response tokens of the minibatch."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        return Weighing(float(sum(len(rows[i].response) for i in part)))


class PerStep:
    """The sum over each response, averaged over the responses."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        return Weighing(float(len(part)))


class PerEpisode:
    """The sum over each episode, averaged over the episodes drawn."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        return Weighing(len({row.draw for row in rows}) * len(part) / len(rows))


class ResponseMean:
    """The mean over each response's tokens, averaged over the responses, as GRPO and GSPO have it."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        return Weighing(float(len(part)), [1.0 / max(1, len(rows[i].response)) for i in part])


@configured
class MicroBatch:
    """The mean over the tokens of each ``rows`` responses in turn, averaged, as in the first author's code.

    Responses count more in such a part if it has few tokens.
    """

    rows: int = Field(8, ge=1)
    """The responses of a part; it needn't be what one forward pass has."""

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        starts = range(0, len(part), self.rows)
        tokens = [sum(len(rows[i].response) for i in part[start : start + self.rows]) for start in starts]
        return Weighing(float(len(starts)), [1.0 / tokens[place // self.rows] for place in range(len(part))])


@configured
class Constant:
    """The number of responses times the most tokens that a response may have, a constant (arXiv 2503.20783).

    A response's length then doesn't change what its tokens weigh.
    """

    max_response_tokens: int = 256
    """The most tokens of a response."""

    shared: ClassVar[Shared] = {"max_response_tokens": "max_response_tokens"}

    def weigh(self, rows: Sequence[TokenRow], part: Sequence[int]) -> Weighing:
        return Weighing(float(len(part) * self.max_response_tokens))


NORMALIZERS: Registry[Normalizer] = Registry(
    "normalizer",
    {
        "token": "agents.msgrpo.normalizers:PerToken",
        "step": "agents.msgrpo.normalizers:PerStep",
        "episode": "agents.msgrpo.normalizers:PerEpisode",
        "response": "agents.msgrpo.normalizers:ResponseMean",
        "micro_batch": "agents.msgrpo.normalizers:MicroBatch",
        "constant": "agents.msgrpo.normalizers:Constant",
    },
    setting="loss_normalizer",
)

register_normalizer = NORMALIZERS.register
