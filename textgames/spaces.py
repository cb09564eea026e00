"""Spaces of strings: what a player may read and what it may write.

Gymnasium's ``Text`` is a set of strings over a character set. It defaults to at least one alphanumeric character and
tests every character in Python, while a response may be any string at all and is tested at every step by some wrappers.
These two are still ``Text`` for whoever dispatches on the type (batching, flattening, frame stacking).
"""

import string
from typing import Any

from gymnasium import spaces

_PRINTABLE = "".join(sorted(set(string.printable) - set("\t\r\x0b\x0c")))


class ObservationText(spaces.Text):
    """Observations: printable ASCII and line ends, up to ``max_length`` characters.

    Membership tests cost a few microseconds per 1000 characters.
    """

    def __init__(self, max_length: int = 1_000_000, *, charset: str = _PRINTABLE, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=charset, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string of no more than ``max_length`` characters of the set."""
        return isinstance(x, str) and len(x) <= self.max_length and self.character_set.issuperset(x)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random string; short (up to 64 characters) unless a mask gives the length."""
        if mask is None and probability is None:
            mask = (int(self.np_random.integers(0, min(64, self.max_length) + 1)), None)
        return super().sample(mask, probability)

    def __repr__(self) -> str:
        return f"ObservationText(max_length={self.max_length})"


class ResponseText(spaces.Text):
    """Responses: every string; ``sample()`` gives one of the commands that a player is told of.

    Args:
        commands: the strings to sample from: a game's actions.
        seed: seed of the space's own generator.
    """

    commands: tuple[str, ...]

    def __init__(self, commands: tuple[str, ...], *, seed: int | None = None) -> None:
        self.commands = tuple(commands)
        longest = max(map(len, self.commands))
        # the character set is what can be sampled; `contains` accepts more, a model may write anything
        super().__init__(longest, min_length=0, charset="".join(sorted(set("".join(self.commands)))), seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string: what it says is for the action map to judge."""
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """One of the commands, uniformly.

        Raises:
            ValueError: a mask or probabilities were given; commands have none.
        """
        if mask is not None or probability is not None:
            raise ValueError("ResponseText.sample takes no mask and no probability; it samples one of its commands")
        return self.commands[int(self.np_random.integers(len(self.commands)))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseText) and self.commands == other.commands

    __hash__ = None  # type: ignore[assignment]  # as every Space: mutable, it owns a generator

    def __repr__(self) -> str:
        return f"ResponseText({', '.join(self.commands)})"
