"""Werewolf: hidden roles, speeches and votes. ``rules`` is the game without text, ``text`` what players read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
