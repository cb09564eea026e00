"""Levels of games: settings of their generators that were measured to be harder and harder, as tables of data."""

from textgames.ladders.ladder import Ladder, Level, ladder_of, register_ladder

__all__ = ["Ladder", "Level", "ladder_of", "register_ladder"]
