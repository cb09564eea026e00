"""Every position of a small game of OpenSpiel without chance and without secrets, and the yardstick that solves it."""

from collections import deque
from collections.abc import Mapping
from functools import cache

from textgames.open_spiel.library import Key, SpielState, library, load
from textgames.solving.minimax import Minimax
from textgames.tsmg import TSMG

MAX_POSITIONS = 20_000  # the most positions that are listed: about a second

Position = tuple[int, str]
"""The number of the player to move (below 0 once the game is over) and the library's text of the position."""


def position_of(state: SpielState) -> Position:
    """Return what a state's value depends on."""
    return state.node.current_player(), state.node.to_string()


@cache
def positions_of(key: Key) -> Mapping[Position, SpielState] | None:
    """Return every position of a game, with one state each, the start first; ``None`` if there are too many."""
    start = SpielState(key, (), load(*key).new_initial_state())
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


def small_positions(key: Key) -> Mapping[Position, SpielState]:
    """Return the positions of a small zero-sum game of two in turns without chance and secrets, else a ValueError."""
    pyspiel, game = library(), load(*key)
    kind = game.get_type()
    solvable = (
        kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        and kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
        and kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        and kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        and game.num_players() == 2
    )
    positions = positions_of(key) if solvable else None
    if positions is None:
        raise ValueError(
            f"{key[0]} isn't a small zero-sum game for two players in turn, without chance and hidden information"
        )
    return positions


def minimax(game: TSMG[SpielState]) -> Minimax:
    """Return the yardstick of a small game; a ValueError for any other, see :func:`small_positions`."""
    states = small_positions(game.key)  # type: ignore[attr-defined]  # an OpenSpiel, which reads positions from here
    return Minimax(game, canonical=lambda state: states[position_of(state)])
