"""The yardstick of OpenSpiel's small games without chance and without secrets: minimax over every position."""

from textgames.open_spiel.game import OpenSpiel
from textgames.open_spiel.positions import position_of, small_positions
from textgames.solving.minimax import Minimax


def minimax(game: OpenSpiel) -> Minimax:
    """The yardstick of a small game; a ValueError for any other, see :func:`small_positions`."""
    states = small_positions(game.key)
    return Minimax(game, canonical=lambda state: states[position_of(state)])
