"""Levels of games: how hard each of them is, and how few episodes find a player's level."""
