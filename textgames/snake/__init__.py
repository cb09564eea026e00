"""Snake: simultaneous moves, any number of snakes, food that may be worth anything.

Read ``rules`` (settings, state, one round), then ``text``, ``game`` (both as a TSMG), ``reading`` and ``solver``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
