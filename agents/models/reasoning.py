"""A model's own reasoning, ``<think>...</think>`` before its response, told from the response.

Models that were trained to reason (Qwen3, DeepSeek-R1 and others) write it first; the response is the text behind the
last ``</think>``. The response mode ``think`` asks every model for a ``<think>`` that is a part of the response, so the
chat template, the user or a response tells whether reasoning is the model's own, never the mode's text. Games read no
action in a ``<think>`` of either kind (:mod:`textgames.texts.actions`), and no stop string ends a response there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from agents.turn import Turn
from textgames.texts.actions import THINK, THOUGHT, behind_thoughts

Decode = Callable[[Sequence[int]], str]

Opening = Literal["none", "may", "open"]
"""The model's own reasoning before a response: never, if it writes ``<think>``, or always, as the prompt ends so."""


class Begun(NamedTuple):
    """The beginning of a response: the prefix that it continues, and whether the model reasons before it."""

    prefix: str = ""
    opening: Opening = "none"

    @property
    def text(self) -> str:
        """The part of the response that stands in its prompt: the prefix, or the template's ``<think>``."""
        return THINK if self.opening == "open" else self.prefix


NOT_BEGUN = Begun()


def still_reasons(text: str, opening: Opening) -> bool:
    """Report whether a model's text so far ends in reasoning, which may be opened again behind its close."""
    return opening != "none" and behind_thoughts(Begun(opening=opening).text + text) is None


def split_reasoning(text: str, opening: Opening) -> tuple[str, str]:
    """Return ``(reasoning, response)`` of a model's text so far: all is reasoning until it is closed."""
    inside = still_reasons(text, opening)
    before, closed, after = (text, THOUGHT, "") if inside else text.rpartition(THOUGHT)
    if not closed or opening == "none":
        return "", text
    return before.strip().removeprefix(THINK).strip(), after.lstrip()


def reasoning_tokens(ids: Sequence[int], opening: Opening, decode: Decode) -> int:
    """Return how many of a response's tokens are reasoning: those up to the one that closes it."""
    text = decode(ids)
    if still_reasons(text, opening):
        return len(ids)
    closed = 0 if opening == "none" else text.count(THOUGHT)
    return _fewest(ids, lambda begun: begun.count(THOUGHT) == closed, decode) if closed else 0


def end_of_response(text: str, stops: Sequence[str], begun: str = "") -> int | None:
    """Return the end of the first stop string outside of an open ``<think>``, perhaps of the prompt's (``begun``), or
    ``None``."""
    ends = sorted({found.end() for stop in stops for found in re.finditer(re.escape(stop), text)})
    return next((end for end in ends if behind_thoughts(begun + text[:end]) is not None), None)


def behind_reasoning(completion: Turn, opening: Opening, stops: Sequence[str], decode: Decode) -> Turn:
    """Return the completion of an engine that was sent no stop string, as if it had stopped at the first one behind the
    reasoning."""
    ids = completion.response_ids
    if opening == "none" or ids is None or completion.error is not None:
        return completion
    end = end_of_response(completion.response, stops, Begun(opening=opening).text)
    reasoning, response = split_reasoning(completion.response[:end], opening)
    if end is not None:
        kept = _fewest(ids, lambda begun: len(begun) >= end, decode)
        completion = replace(
            completion,
            response_ids=ids[:kept],
            logprobs=None if completion.logprobs is None else completion.logprobs[:kept],
            weights=tuple(span._replace(stop=min(span.stop, kept)) for span in completion.weights if span.start < kept),
            finish_reason="stop",
        )
        ids = ids[:kept]
    usage = completion.usage._replace(
        completion_tokens=len(ids), reasoning_tokens=reasoning_tokens(ids, opening, decode)
    )
    return replace(completion, response=response, reasoning=reasoning, usage=usage)


def _fewest(ids: Sequence[int], enough: Callable[[str], bool], decode: Decode) -> int:
    """Return the fewest of the tokens whose text is enough, if that of all of them is."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(decode(ids[:middle])) else (middle + 1, high)
    return low


def check_thinking(arguments: Mapping[str, Any] | None, budget: int | None) -> dict[str, Any]:
    """Return a chat template's arguments as a dictionary; a ValueError if they or the budget have a wrong type."""
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ValueError(f"chat_template_kwargs is a table, such as {{enable_thinking = false}}, got {arguments!r}")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= 10**7):
        raise ValueError(f"thinking_budget is a whole number of tokens from 1 to 10,000,000, got {budget!r}")
    return dict(arguments or {})
