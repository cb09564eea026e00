"""A game's metrics at the end of an episode, worked out for those who look at them.

Some cost more than the whole episode did, such as exact regrets against optimal play; a training loop that never reads
them shouldn't pay for them. A state is a value, so that they come out the same whenever they are asked for.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from textgames.tsmg import TSMG, Player


def metrics_of(game: TSMG[Any], state: Any, player: Player) -> dict[str, float]:
    """``{name: value}`` of an episode that ended in ``state``; empty in a game without any."""
    return {name: float(value) for name, value in game.metrics(state, player).items()}


class Metrics(Mapping[str, float]):
    """The mapping that :func:`metrics_of` returns, computed when it is first looked at.

    It is equal to the dictionary, and pickled as one.
    """

    def __init__(self, game: TSMG[Any], state: Any, player: Player) -> None:
        self._asked = game, state, player

    @cached_property
    def _values(self) -> dict[str, float]:
        return metrics_of(*self._asked)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._values,)
