"""Players of text games: language-agent policies, baselines, and the loop that plays them. Begin at :mod:`agents.turn`.

Names are imported when they are first used, so ``import agents`` loads neither torch nor an API client.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
