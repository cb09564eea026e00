"""Werewolf: hidden roles, speeches and votes. ``rules`` is the game without text, ``text`` what players read."""

from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
