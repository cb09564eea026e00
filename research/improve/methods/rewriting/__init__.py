"""Improvers that rewrite the texts and settings of a player, and what they share."""
