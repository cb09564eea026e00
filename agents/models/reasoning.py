"""A model's own reasoning, ``<think>...</think>`` before its response, told from the response.

Models that were trained to reason (Qwen3, DeepSeek-R1 and others) write it first, and what they consider there isn't
their answer: the response is what follows the last ``</think>``.

The response mode ``think`` asks every model for a ``<think>`` of its own, which is a part of the response. So whether
reasoning is the model's own is never guessed from the mode's text: a chat template says so for models of this process
(:func:`agents.models.local.templates.opening_of`), and the user, or a response itself, for those behind servers.

Games read no action in a ``<think>``, whoever asked for it (:mod:`textgames.texts.actions`), and a stop string ends no
response there either.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from agents.turn import Turn
from textgames.texts.actions import THINK, THOUGHT, behind_thoughts

Decode = Callable[[Sequence[int]], str]

Opening = Literal["none", "may", "open"]
"""Whether a response begins in the model's own reasoning: never; if it writes ``<think>``; or always, as the prompt
ends so."""


class Begun(NamedTuple):
    """What a response begins with: the prefix that it goes on from, and whether the model reasons before it."""

    prefix: str = ""
    opening: Opening = "none"

    @property
    def text(self) -> str:
        """What of the response stands in its prompt: the prefix, or the template's ``<think>``."""
        return THINK if self.opening == "open" else self.prefix


NOT_BEGUN = Begun()


def still_reasons(text: str, opening: Opening) -> bool:
    """Return whether what a model has written so far ends in reasoning, which may be opened again behind its close."""
    return opening != "none" and behind_thoughts(Begun(opening=opening).text + text) is None


def split_reasoning(text: str, opening: Opening) -> tuple[str, str]:
    """Return ``(reasoning, response)`` of what a model wrote, or has written so far: all is reasoning until it is
    closed."""
    if still_reasons(text, opening):
        return _bare(text), ""
    before, closed, after = text.rpartition(THOUGHT)
    return (_bare(before), after.lstrip()) if closed and opening != "none" else ("", text)


def reasoning_tokens(ids: Sequence[int], opening: Opening, decode: Decode) -> int:
    """Return how many of a response's tokens are reasoning: those up to the one that closes it."""
    text = decode(ids)
    if still_reasons(text, opening):
        return len(ids)
    closed = 0 if opening == "none" else text.count(THOUGHT)
    return _fewest(ids, lambda begun: begun.count(THOUGHT) == closed, decode) if closed else 0


def end_of_response(text: str, stops: Sequence[str], begun: str = "") -> int | None:
    """Return where the first stop string ends that no open ``<think>`` is around; ``None`` if there is none.

    What comes after it wouldn't have been written by an engine that stops there, and doesn't count. ``begun`` is what
    of the response stands in its prompt.
    """
    ends = sorted({found.end() for stop in stops for found in re.finditer(re.escape(stop), text)})
    return next((end for end in ends if behind_thoughts(begun + text[:end]) is not None), None)


def behind_reasoning(completion: Turn, opening: Opening, stops: Sequence[str], decode: Decode) -> Turn:
    """Return what an engine that was sent no stop string has written, ended at the first one behind the reasoning.

    The tokens after that are left out, as if the engine had stopped there.
    """
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


def _bare(reasoning: str) -> str:
    return reasoning.strip().removeprefix(THINK).strip()


def asks_for_reasoning(arguments: Mapping[str, Any]) -> bool | None:
    """Return whether a chat template's arguments switch reasoning on or off; ``None`` if they say nothing of it."""
    said = [arguments[name] for name in ("enable_thinking", "thinking") if isinstance(arguments.get(name), bool)]
    return said[0] if said else None


def check_thinking(arguments: Mapping[str, Any] | None, budget: int | None) -> dict[str, Any]:
    """Return a chat template's arguments as a dictionary, once they and the budget are seen to be such.

    Raises:
        ValueError: they aren't; it names the option.
    """
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ValueError(f"chat_template_kwargs is a table, such as {{enable_thinking = false}}, got {arguments!r}")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= 10**7):
        raise ValueError(f"thinking_budget is a whole number of tokens from 1 to 10,000,000, got {budget!r}")
    return dict(arguments or {})
