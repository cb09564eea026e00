"""Leaderboard entries: making one of a run, and checking one by replay."""
