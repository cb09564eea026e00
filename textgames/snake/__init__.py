"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

Read ``rules`` (settings, state, one round), then ``text``, ``game`` (both as a TSMG), ``reading`` and ``solver``.
"""

from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
