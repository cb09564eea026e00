"""The games of the suite ``exploration``: games that hide something: find out, then use it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
