"""A policy's action probabilities, and on them its wishes at every step of an episode and the value that it loses
per decision (``inspection``), and the value that it loses to the opponent that knows it best (``exploitability``)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
