"""Models of this process that reason before they respond: when a response has ended, and a budget for the reasoning.

A stop string inside the reasoning ends nothing (:class:`ReasoningCheck`). A model that reasons for longer than its
budget has its reasoning closed for it, as the published recipes do (:func:`within_budget`): ``</think>`` is written,
and it goes on from there to its response. Those tokens aren't sampled: their log-probability is 0, that of the one
continuation that was allowed there, so that training leaves them alone.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.models.local.decoding.sampler import Sampled, StopCheck, TokenIds
from agents.models.reasoning import CLOSE, Opening, split_reasoning, still_reasons
from agents.turn import TokenSet

CLOSING = f"\n{CLOSE}\n\n"
"""What closes reasoning that has used up its budget."""


class ReasoningCheck:
    """A :class:`~agents.models.local.decoding.sampler.StopCheck` that looks for stop strings after the reasoning alone.

    Args:
        check: what knows the stop strings.
        openings: whether each row may reason.
        before: tokens of each row's response that it goes on from.
    """

    def __init__(self, check: StopCheck, openings: Sequence[Opening], before: Sequence[TokenIds] = ()) -> None:
        self._check, self._openings = check, openings
        self._before = before or [()] * len(openings)

    def of(self, rows: Sequence[int]) -> "ReasoningCheck":
        """The same for some of the rows, in their order."""
        return ReasoningCheck(self._check, [self._openings[row] for row in rows], [self._before[row] for row in rows])

    def ended(self, ids: NDArray[np.int64], rows: NDArray[np.intp], length: int) -> NDArray[np.bool_]:
        """As :meth:`StopCheck.ended`. Only tokens that can end a stop string make it decode a response."""
        last = ids[rows, length - 1]
        done: NDArray[np.bool_] = self._check.is_eos[last]
        for index in np.flatnonzero(self._check.may_end[last] & ~done):
            row = rows[index]
            text = self._check.decode([*self._before[row], *ids[row, :length].tolist()])
            response = split_reasoning(text, self._openings[row])[1]
            done[index] = any(stop in response for stop in self._check.stop)
        return done


Run = Callable[[Sequence[int], Sequence[TokenIds], Sequence[int], ReasoningCheck, int], list[Sampled]]
"""``(rows, their prompts, their limits, their check, tokens drawn before) -> responses``."""


def sample_reasoned(
    run: Run,
    prompts: Sequence[TokenIds],
    limits: Sequence[int],
    openings: Sequence[Opening],
    check: StopCheck,
    budget: int | None,
    closing: TokenIds,
) -> list[Sampled]:
    """One response per prompt, reasoned about no longer than the budget allows, after which come its closing tokens."""
    if budget is None:
        return run(range(len(prompts)), prompts, limits, ReasoningCheck(check, openings), 0)
    return within_budget(run, prompts, limits, openings, check, budget, closing)


def within_budget(
    run: Run,
    prompts: Sequence[TokenIds],
    limits: Sequence[int],
    openings: Sequence[Opening],
    check: StopCheck,
    budget: int,
    closing: TokenIds,
) -> list[Sampled]:
    """One response per prompt, none of which reasons for more than the budget.

    All rows are sampled as far as the budget goes; those that go on then do so with what closes their reasoning, where
    they are in it. A row that has ended its reasoning before draws what it would have drawn without a budget.
    """
    everybody = range(len(prompts))
    first = run(everybody, prompts, [min(budget, limit) for limit in limits], ReasoningCheck(check, openings), 0)
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
        now = ReasoningCheck(check, [openings[row] for row in going], [ids for ids, _ in begun])
        rest = run(going, prompts_now, limits_now, now, budget)
        for row, (ids, logprobs), more in zip(going, begun, rest, strict=True):
            forced = tuple(TokenSet((token,)) for token in ids[budget:])
            allowed = (None,) * budget + forced + (None,) * len(more.ids) if forced else None
            sampled[row] = more._replace(ids=ids + more.ids, logprobs=logprobs + more.logprobs, allowed=allowed)
    return sampled
