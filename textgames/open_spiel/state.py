"""A node of a game of the library as a value, and what chance makes of it."""

from bisect import bisect
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from numpy.random import Generator

from textgames.open_spiel.library import Key, Reading, load
from textgames.tsmg import Action

# from one node to the next: an action or outcome by its number, or those of all players at once
Move = int | tuple[int, ...]


class SpielState:
    """A node of a game, at which a player decides or the game is over.

    Attributes:
        moves: everything that led here; states of one game are equal when these are.
        node: the library's state; never changed, and no part of the comparison.
    """

    __slots__ = ("_actions", "_game", "moves", "node")

    def __init__(self, game: Key, moves: tuple[Move, ...], node: Any) -> None:
        self._game, self.moves, self.node = game, moves, node
        self._actions: dict[int, dict[Action, int]] = {}

    def actions(self, place: int, reading: Reading) -> Mapping[Action, int]:
        named = self._actions.get(place)
        if named is None:
            named = self._actions[place] = _named_actions(self.node, place, reading)
        return named

    def after(self, move: Move) -> "SpielState":
        node = self.node.clone()
        if isinstance(move, tuple):
            node.apply_actions(list(move))
        else:
            node.apply_action(move)
        return SpielState(self._game, (*self.moves, move), node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpielState) and self.moves == other.moves and self._game == other._game

    def __hash__(self) -> int:
        return hash(self.moves)

    def __reduce__(self) -> tuple[Any, ...]:
        return replay, (self._game, self.moves)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SpielState":
        return self

    def __repr__(self) -> str:
        return f"SpielState({self._game[0]!r}, moves={self.moves})"


def replay(game: Key, moves: tuple[Move, ...]) -> SpielState:
    """Return the state that moves lead to from the beginning."""
    state = SpielState(game, (), load(*game).new_initial_state())
    for move in moves:
        state = state.after(move)
    return state


def _named_actions(node: Any, place: int, reading: Reading) -> dict[Action, int]:
    legal = node.legal_actions(place)
    own = [node.action_to_string(place, action).strip() for action in legal]
    names = [reading.rename(name.casefold()) for name in own]
    if len(set(names)) < len(names):  # Bxc3 and bxc3 are two moves in chess: these keep the library's own names
        names = [name if names.count(name) == 1 else exact for name, exact in zip(names, own, strict=True)]
    return dict(zip(names, legal, strict=True))


def sampled(state: SpielState, rng: Generator) -> SpielState:
    """Draw until a player decides or the game is over: one uniform number for each of chance's nodes."""
    while state.node.is_chance_node():
        moves, chances = zip(*state.node.chance_outcomes(), strict=True)
        drawn = bisect(list(accumulate(chances)), rng.random() * sum(chances))
        state = state.after(moves[min(drawn, len(moves) - 1)])
    return state


def resolved(chance: float, state: SpielState) -> Iterator[tuple[float, SpielState]]:
    """Yield every node at which a player decides or the game is over, with its probability."""
    if not state.node.is_chance_node():
        yield chance, state
        return
    for move, probability in state.node.chance_outcomes():
        if probability > 0:
            yield from resolved(chance * probability, state.after(move))
