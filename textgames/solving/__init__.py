"""Solvers that work on any game that tells its outcomes: value iteration, minimax, equilibria of hidden information."""

from textgames.importing import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
