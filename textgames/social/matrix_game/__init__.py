"""Repeated matrix games: two players choose at the same time, again and again, and see what came of it."""

from textgames.social.matrix_game.game import MatrixGame, MatrixState

__all__ = ["MatrixGame", "MatrixState"]
