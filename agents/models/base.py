"""A language model as this package sees it: prompts in, completions out, and nothing about games.

:class:`LanguageModel` completes a whole batch at once (models in this process), :class:`AsyncLanguageModel` one prompt
at a time, many at once (models behind a server). A model of either form becomes a player through
:class:`agents.policy.LanguageAgentPolicy`.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol, runtime_checkable

from agents.turn import Prompt, Turn

CLOSE_TAG = "</action>"
"""The default stop string. Text behind a response's action is neither read nor worth paying for."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """The way to draw a response from the model's distribution; a ValueError names a field that is out of range.

    Attributes:
        temperature: softmax temperature; 0 takes the most probable token. 0.5 is the paper's for evaluation, 1.25 its
            value for training.
        top_p: nucleus sampling, in (0, 1]; 1 keeps the whole vocabulary.
        max_tokens: the most tokens of a response.
        stop: strings that end a response. The text of a completion includes the one that ended it.
    """

    temperature: float = 0.5
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = (CLOSE_TAG,)

    def __post_init__(self) -> None:
        if not (isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"decoding.temperature is a number of at least 0, got {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"decoding.top_p is above 0 and at most 1, got {self.top_p!r}")
        if isinstance(self.max_tokens, bool) or not isinstance(self.max_tokens, int) or self.max_tokens < 1:
            raise ValueError(f"decoding.max_tokens is a whole number of at least 1, got {self.max_tokens!r}")
        stop: Any = self.stop
        if isinstance(stop, str):  # it would end a response at every one of its letters
            raise ValueError(f"decoding.stop is a tuple of strings, got the string {stop!r}; write ({stop!r},)")
        if not isinstance(stop, (tuple, list)) or not all(isinstance(text, str) and text for text in stop):
            raise ValueError(f"decoding.stop is a tuple of non-empty strings, got {stop!r}")
        object.__setattr__(self, "stop", tuple(self.stop))

    @property
    def deterministic(self) -> bool:
        """Whether the same prompt always gets the same response (as far as the model's arithmetic does)."""
        return self.temperature == 0


@runtime_checkable
class LanguageModel(Protocol):
    """A model in this process; results call it by its ``name``."""

    name: str

    def generate(self, prompts: Sequence[Prompt], decoding: Decoding, seeds: Sequence[tuple[int, ...]]) -> list[Turn]:
        """Return one :class:`~agents.turn.Turn` per prompt, in order, without the prompt.

        If a prompt is longer than the model can read, its :attr:`Turn.error` reports it; the others are answered. All
        randomness of a row comes from its own seed, so that a completion doesn't depend on the rest of the batch.
        """


@runtime_checkable
class AsyncLanguageModel(Protocol):
    """A model behind a server; results call it by its ``name``."""

    name: str

    async def generate_async(self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...]) -> Turn:
        """Return the completion of one prompt; a provider's errors, after retries, come back in :attr:`Turn.error`."""


class NotLoaded:
    """A :class:`LanguageModel` that was checked and can't answer; ``unconstrained`` is its ``why_unconstrained``."""

    def __init__(
        self, name: str, unconstrained: Callable[[bool], str | None] = lambda reasons: None, takes_images: bool = False
    ) -> None:
        self.name, self.why_unconstrained, self.takes_images = name, unconstrained, takes_images
        self.takes_tools = True  # a model in this process is refused before it is checked

    def generate(self, prompts: Sequence[Prompt], decoding: Decoding, seeds: Sequence[tuple[int, ...]]) -> list[Turn]:
        raise NotImplementedError(f"{self.name} was checked, and not loaded")


def why_unconstrained(model: LanguageModel | AsyncLanguageModel, reasons: bool) -> str | None:
    """Return why a model can't be held to legal answers, as half a sentence; ``None`` if it can.

    A model that can has this method (``reasons``: it may write before the action) and takes each prompt's
    :class:`~agents.models.answers.LegalAnswers` or ``None`` as the last argument of ``generate[_async]``.
    """
    ask: Callable[[bool], str | None] = getattr(
        model, "why_unconstrained", lambda reasons: "its model takes no list of legal answers"
    )
    return ask(reasons)


def settings_of(model: LanguageModel | AsyncLanguageModel) -> Any:
    """Return what decides a model's responses, as plain data: its ``settings``, or its name if it has none."""
    return getattr(model, "settings", {"name": model.name})


def check_prefix(model: LanguageModel | AsyncLanguageModel, prefix: str) -> None:
    """Raise the ValueError of a model that is known not to continue a response's prefix, by its ``check_prefix``."""
    check: Callable[[str], None] = getattr(model, "check_prefix", lambda prefix: None)
    check(prefix)


def seed_number(seed: tuple[int, ...]) -> int:
    """Return a decision's seed as one number of 31 bits, which every server and engine takes."""
    return int.from_bytes(hashlib.blake2b(repr(seed).encode(), digest_size=4).digest(), "big") >> 1
