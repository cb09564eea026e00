"""The update: rows of tokens are packed, scored, turned into a loss and stepped on, in one process or several."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
