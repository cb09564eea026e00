"""The yardstick of OpenSpiel's small games without chance and without secrets: minimax over every position."""

from collections import deque
from collections.abc import Mapping
from functools import cache

from textgames.open_spiel.game import OpenSpiel
from textgames.open_spiel.library import Key, library
from textgames.open_spiel.state import SpielState
from textgames.solving.minimax import Minimax
from textgames.tsmg import Player

MAX_POSITIONS = 20_000
"""The most positions that are solved: about a second."""

Position = tuple[int, str]
"""Who moves (below 0 once the game is over) and the library's text of the position."""


def position_of(state: SpielState) -> Position:
    """What a state's value depends on."""
    return state.node.current_player(), state.node.to_string()


@cache
def positions_of(key: Key) -> Mapping[Position, SpielState] | None:
    """Every position of a game, with one state each, the start first; ``None`` where there are too many."""
    game = OpenSpiel(name=key[0], parameters=dict(key[1]))
    (start,) = [state for _, state in game.initial_outcomes()]
    found, queue = {position_of(start): start}, deque([start])  # the shortest way to each: some games limit moves
    while queue:
        state = queue.popleft()
        if state.node.is_terminal():
            continue
        for move in state.node.legal_actions():
            after = state.after(move)
            if position_of(after) not in found:
                found[position_of(after)] = after
                queue.append(after)
        if len(found) > MAX_POSITIONS:
            return None
    return found


def require_small(game: OpenSpiel) -> None:
    """Raise a ValueError unless two take turns in a zero-sum game without chance, secrets and many positions."""
    pyspiel, kind = library(), game.library_game.get_type()
    solvable = (
        kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        and kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
        and kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        and kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        and len(game.players) == 2
    )
    if not solvable or positions_of(game.key) is None:
        raise ValueError(f"{game.key[0]} is no small zero-sum game of two who take turns, without chance and secrets")


def minimax(game: OpenSpiel) -> Minimax:
    """The yardstick of a small game; a ValueError for any other, see :func:`require_small`."""
    require_small(game)
    states = positions_of(game.key) or {}
    return Minimax(game, canonical=lambda state: states[position_of(state)])


@cache
def states_by_observation(key: Key, observation: str) -> Mapping[tuple[Player, str], SpielState]:
    """``{(who moves, what it reads): a state}`` of a small game.

    Raises:
        ValueError: the game isn't small.
    """
    game = OpenSpiel(name=key[0], parameters=dict(key[1]), observation=observation)
    require_small(game)
    states = positions_of(key) or {}
    return {(player, game.observe(state, player)): state for state in states.values() for player in game.to_move(state)}
