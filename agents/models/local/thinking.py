"""Models of this process that reason before they respond: when a response has ended, and a budget for the reasoning.

A stop string inside the reasoning ends nothing (:class:`ReasoningCheck`). A model that reasons for longer than its
budget has its reasoning closed for it, as the published recipes do (:func:`within_budget`): ``</think>`` is written,
and it goes on from there to its response. Those tokens aren't sampled: their log-probability is 0, that of the one
continuation that there was.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.models.local.sampler import Sampled, StopCheck, TokenIds
from agents.models.local.templates import check_arguments, check_budget, opening_of
from agents.models.reasoning import CLOSE, Opening, check_thinking, split_reasoning, still_reasons

CLOSING = f"\n{CLOSE}\n\n"
"""What closes reasoning that has used up its budget."""


class ReasoningCheck:
    """A :class:`~agents.models.local.sampler.StopCheck` that looks for stop strings behind the reasoning alone.

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


class Thinking:
    """Whether and for how long a model reasons: its chat template's arguments, and the budget.

    Raises:
        ValueError: the template doesn't read the arguments, or knows no reasoning that a budget could be of.
    """

    def __init__(self, tokenizer: Any, arguments: Mapping[str, Any] | None, budget: int | None, name: str) -> None:
        self.arguments, self.budget = check_thinking(arguments, budget), budget
        check_arguments(tokenizer, self.arguments, name)
        check_budget(tokenizer, budget, name)
        self._tokenizer = tokenizer
        self._openings: dict[str, Opening] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen, for manifests; without what is as usual."""
        chosen: dict[str, Any] = {"chat_template_kwargs": self.arguments} if self.arguments else {}
        return chosen if self.budget is None else {**chosen, "thinking_budget": self.budget}

    def opening(self, prefix: str) -> Opening:
        """Whether the model reasons before a response that begins with a prefix, or with none."""
        if prefix not in self._openings:
            self._openings[prefix] = opening_of(self._tokenizer, prefix, self.arguments)
        return self._openings[prefix]

    def sample(
        self,
        run: Run,
        prompts: Sequence[TokenIds],
        limits: Sequence[int],
        openings: Sequence[Opening],
        check: StopCheck,
    ) -> list[Sampled]:
        """One response per prompt, reasoned about no longer than the budget allows."""
        if self.budget is None:
            return run(range(len(prompts)), prompts, limits, ReasoningCheck(check, openings), 0)
        closing = tuple(self._tokenizer(CLOSING, add_special_tokens=False)["input_ids"])
        return within_budget(run, prompts, limits, openings, check, self.budget, closing)


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
            sampled[row] = more._replace(ids=ids + more.ids, logprobs=logprobs + more.logprobs)
    return sampled


def reasoning_tokens(ids: TokenIds, opening: Opening, decode: Callable[[Sequence[int]], str]) -> int:
    """How many of a response's tokens are reasoning: those up to the one that closes it."""
    text = decode(ids)
    if opening == "none" or not split_reasoning(text, opening)[0]:
        return 0
    if still_reasons(text, opening):
        return len(ids)
    closed, low, high = text.count(CLOSE), 0, len(ids)
    while low < high:  # the fewest tokens whose text has all that closes
        middle = (low + high) // 2
        low, high = (low, middle) if decode(ids[:middle]).count(CLOSE) == closed else (middle + 1, high)
    return low
