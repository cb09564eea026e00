"""Spaces of strings: what a player may read and what it may write.

Gymnasium's ``Text`` tests every character against a listed character set in Python, while a response may be any string
and is tested at every step by some wrappers. These two are still ``Text`` for code that dispatches on the type, with a
test of their own for what they contain.
"""

import re
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory
from numpy.typing import NDArray

from textgames.tsmg import TSMG

# in the order in which samples are drawn
_ASCII = "\n" + "".join(map(chr, range(32, 127)))
# What str.isprintable() leaves out although texts need it: line ends, the spaces of other scripts (U+3000 in Chinese
# and Japanese), and the two joiners that Persian words and many emoji are written with.
_ALSO_PRINTABLE = re.compile("[\n\u00a0\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\u3000]+")

_SAMPLED_COMMANDS = 32  # of games that don't list their actions


class ObservationText(spaces.Text):
    """Observations: printable characters of any script and line ends, up to ``max_length`` characters.

    ``sample()`` draws from ASCII alone: as a character set of Gymnasium's, all of Unicode would take 25 MB a space.
    """

    def __init__(self, max_length: int = 1_000_000, *, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=_ASCII, seed=seed)

    def contains(self, x: Any) -> bool:
        if not isinstance(x, str) or len(x) > self.max_length:
            return False
        # a replacement for ASCII, as nearly all observations are: the pattern takes ten times longer
        return (x.replace("\n", "") if x.isascii() else _ALSO_PRINTABLE.sub("", x)).isprintable()

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a random string; short (up to 64 characters) unless a mask gives the length."""
        if mask is None and probability is None:
            mask = (int(self.np_random.integers(0, min(64, self.max_length) + 1)), None)
        return super().sample(mask, probability)

    def __repr__(self) -> str:
        return f"ObservationText(max_length={self.max_length})"


class ResponseText(spaces.Text):
    """Responses: every string; ``sample()`` gives one of the commands that a player is told of."""

    commands: tuple[str, ...]

    def __init__(self, commands: tuple[str, ...], *, seed: int | None = None) -> None:
        self.commands = tuple(commands)
        longest = max(map(len, self.commands))
        # the character set is what can be sampled; `contains` accepts more, a model may write anything
        super().__init__(longest, min_length=0, charset="".join(sorted(set("".join(self.commands)))), seed=seed)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return one of the commands, uniformly; a ValueError if a mask or probabilities were given."""
        if mask is not None or probability is not None:
            raise ValueError("ResponseText.sample takes no mask and no probability; it samples one of its commands")
        return self.commands[int(self.np_random.integers(len(self.commands)))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseText) and self.commands == other.commands

    __hash__ = None  # type: ignore[assignment]  # as every Space: mutable, it owns a generator

    def __repr__(self) -> str:
        return f"ResponseText({', '.join(self.commands)})"


def response_space(game: TSMG[Any]) -> ResponseText:
    """Return the space of responses; it samples the game's actions, or random ones of its start if none are listed."""
    if game.actions:
        return ResponseText(game.actions)
    rng = np.random.default_rng(0)
    sampled = []
    for _ in range(_SAMPLED_COMMANDS):
        state = game.initial_state(rng)
        sampled.append(game.sample_action(state, game.to_move(state)[0], rng))
    return ResponseText(tuple(dict.fromkeys(sampled)))


NO_CHARACTER = 0x110000  # follows the last character of a flattened text: beyond the last code point of Unicode


@spaces.flatten_space.register(ObservationText)
def _flat_space(space: ObservationText) -> spaces.Box:
    """Texts as arrays, for wrappers that flatten: the code points, of any script, up to ``max_length`` of them."""
    return spaces.Box(0, NO_CHARACTER, (space.max_length,), np.int32)


@spaces.flatten.register(ObservationText)
def _flat(space: ObservationText, x: str) -> NDArray[np.int32]:  # type: ignore[misc]  # typed for a Space of any T
    flat = np.full(space.max_length, NO_CHARACTER, dtype=np.int32)
    flat[: len(x)] = np.frombuffer(x.encode("utf-32-le"), dtype="<i4")
    return flat


@spaces.unflatten.register(ObservationText)
def _unflat(space: ObservationText, x: NDArray[np.int32]) -> str:  # type: ignore[misc]
    return "".join(map(chr, x[x < NO_CHARACTER]))


@create_shared_memory.register(ObservationText)
def _refuse_shared_memory(space: ObservationText, n: int = 1, ctx: Any = None) -> NoReturn:
    """Refuse workers that hand observations over in shared memory: Gymnasium pads texts there to ``max_length``."""
    raise ValueError(
        "text observations can't be handed over in shared memory, which Gymnasium's asynchronous vector environment "
        'uses: make it with vectorization_mode="vector_entry_point" (the fastest) or "sync"; '
        'with "async" it takes vector_kwargs={"shared_memory": False}'
    )
