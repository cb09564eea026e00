"""The games of the suite ``exploration``: games that hide something: find out, then use it."""

from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
