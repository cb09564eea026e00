"""Disguised twins: another text over the same game, made from a table of data.

``twin.py`` is the game that is played, ``vocabulary.py`` reads a table and draws one of its twins, ``phrases.py`` puts
a text into other words and back, ``boards.py`` relabels and mirrors what lies on a board.
"""

from textgames.twins.phrases import UnknownTextError
from textgames.twins.twin import Twin, has_twins, register_vocabulary, twin_of, vocabulary_digest

__all__ = ["Twin", "UnknownTextError", "has_twins", "register_vocabulary", "twin_of", "vocabulary_digest"]
