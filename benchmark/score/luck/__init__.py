"""Scores without luck: what chance gave an episode, scores with it taken out, and luck as a check on entries."""
