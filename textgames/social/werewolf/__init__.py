"""Werewolf: hidden roles, speeches and votes. ``rules`` is the game without text, ``text`` what players read."""

from textgames.social.werewolf.game import Werewolf

__all__ = ["Werewolf"]
