"""A model's own reasoning, ``<think>...</think>`` before its response, told from the response.

Models that were trained to reason (Qwen3, DeepSeek-R1 and others) write it first, and what they consider there isn't
their answer: the response is what follows the last ``</think>``, and a stop string ends nothing before that.

The response mode ``think`` asks every model for a ``<think>`` of its own, which is a part of the response. So whether
reasoning is the model's own is never guessed from the mode's text: a chat template says so for models of this process
(:func:`agents.models.local.templates.opening_of`), and the user, or a response itself, for those behind servers.
"""

from collections.abc import Mapping
from typing import Any, Literal

OPEN, CLOSE = "<think>", "</think>"

Opening = Literal["none", "may", "open"]
"""Whether a response begins in reasoning: never; if its first word is ``<think>``; or always, as the prompt ends so."""


def still_reasons(text: str, opening: Opening) -> bool:
    """Whether what a model has written so far ends in reasoning, which may be opened again behind its close."""
    if opening == "none":
        return False
    _, closed, after = text.rpartition(CLOSE)
    return OPEN in after if closed else opening == "open" or after.lstrip().startswith(OPEN)


def split_reasoning(text: str, opening: Opening) -> tuple[str, str]:
    """``(reasoning, response)`` of what a model wrote, or has written so far: all is reasoning until it is closed."""
    if still_reasons(text, opening):
        return _bare(text), ""
    before, closed, after = text.rpartition(CLOSE)
    return (_bare(before), after.lstrip()) if closed and opening != "none" else ("", text)


def _bare(reasoning: str) -> str:
    return reasoning.strip().removeprefix(OPEN).strip()


def asks_for_reasoning(arguments: Mapping[str, Any]) -> bool | None:
    """Whether a chat template's arguments switch reasoning on or off; ``None`` where they say nothing of it."""
    said = [arguments[name] for name in ("enable_thinking", "thinking") if isinstance(arguments.get(name), bool)]
    return said[0] if said else None


def check_thinking(arguments: Mapping[str, Any] | None, budget: int | None) -> dict[str, Any]:
    """A chat template's arguments as a dictionary, once they and the budget are seen to be such.

    Raises:
        ValueError: they aren't; it names the option.
    """
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ValueError(f"chat_template_kwargs is a table, such as {{enable_thinking = false}}, got {arguments!r}")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= 10**7):
        raise ValueError(f"thinking_budget is a whole number of tokens from 1 to 10,000,000, got {budget!r}")
    return dict(arguments or {})
