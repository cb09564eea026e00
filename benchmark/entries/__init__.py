"""Leaderboard entries: making one of a run, and checking one by replay."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
