"""Frozen Lake: rules in ``rules``, texts in ``text``, the game class in ``game``."""

from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
