"""Players of text games: ``request -> prompt -> model -> response``, and ``policies + tasks -> episodes``.

Start reading at :mod:`agents.turn`. Names are imported when they are first used: no torch, no API client before.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
