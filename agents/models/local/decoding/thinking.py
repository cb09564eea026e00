"""Responses of which something is written already, and a budget for the reasoning of models of this process.

A model that reasons for longer than its budget has its reasoning closed for it, as the published recipes do
(:func:`within_budget`): ``</think>`` is written, and it goes on from there to its response. Those tokens aren't
sampled: their log-probability is 0, that of the one continuation that was allowed there, so that training leaves them
alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.models.local.decoding.sampler import Sampled, StopCheck, TokenIds
from agents.models.reasoning import Opening, still_reasons
from agents.turn import TokenSet
from textgames.texts.actions import THOUGHT

CLOSING = f"\n{THOUGHT}\n\n"
"""What closes reasoning that has used up its budget."""


class RowsCheck:
    """A :class:`~agents.models.local.decoding.sampler.StopCheck` for rows of which something is written already.

    Args:
        check: what knows the stop strings.
        begun: what of each row's response stands in its prompt, such as ``<think>``.
        before: tokens of each row's response that it goes on from.
    """

    def __init__(self, check: StopCheck, begun: Sequence[str], before: Sequence[TokenIds] = ()) -> None:
        self._check, self._begun = check, begun
        self._before = before or [()] * len(begun)
        self.decode = check.decode

    def of(self, rows: Sequence[int], before: Sequence[TokenIds] = ()) -> "RowsCheck":
        """Return the same for some of the rows, in their order; ``before`` is what they go on from now."""
        return RowsCheck(self._check, [self._begun[row] for row in rows], before or [self._before[row] for row in rows])

    def ended(self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
        """As :meth:`StopCheck.ended`."""
        return self._check.ended_as(ids, rows, length, self._stops)

    def _stops(self, row: int, ids: list[int]) -> bool:
        return self._check.stops([*self._before[row], *ids], self._begun[row])


Run = Callable[[Sequence[int], Sequence[TokenIds], Sequence[int], RowsCheck, int], list[Sampled]]
"""``(rows, their prompts, their limits, their check, tokens drawn before) -> responses``."""


def within_budget(
    run: Run,
    prompts: Sequence[TokenIds],
    limits: Sequence[int],
    openings: Sequence[Opening],
    check: RowsCheck,
    budget: int,
    closing: TokenIds,
) -> list[Sampled]:
    """Return one response per prompt, none of which reasons for more than the budget, behind which come its closing
    tokens.

    All rows are sampled as far as the budget goes; those that go on then do so with what closes their reasoning, where
    they are in it. A row that has ended its reasoning before draws what it would have drawn without a budget.
    """
    everybody = range(len(prompts))
    first = run(everybody, prompts, [min(budget, limit) for limit in limits], check, 0)
    sampled = list(first)
    going, begun, prompts_now, limits_now = [], [], [], []
    for row in everybody:
        done = first[row]
        inside = still_reasons(check.decode(done.ids), openings[row])
        added = closing if inside else ()
        left = limits[row] - budget - len(added)
        if done.stopped or len(done.ids) < budget or left < 1:
            continue
        going.append(row)
        begun.append((done.ids + added, done.logprobs + (0.0,) * len(added)))
        prompts_now.append(prompts[row] + done.ids + added)
        limits_now.append(left)
    if going:
        rest = run(going, prompts_now, limits_now, check.of(going, [ids for ids, _ in begun]), budget)
        for row, (ids, logprobs), more in zip(going, begun, rest, strict=True):
            forced = tuple(TokenSet((token,)) for token in ids[budget:])
            allowed = (None,) * budget + forced + (None,) * len(more.ids) if forced else None
            sampled[row] = more._replace(ids=ids + more.ids, logprobs=logprobs + more.logprobs, allowed=allowed)
    return sampled
