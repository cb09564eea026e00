"""Episodes on many machines: workers of a Ray cluster play, and the process that asked collects."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
