"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

In reading order: ``rules`` (settings, state, one round), ``text`` (from state to text), ``game`` (both as a TSMG),
``reading`` (from text back to state), ``solver`` (players that look ahead).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
