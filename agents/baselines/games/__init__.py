"""Search players that know one game, or games of one kind; :mod:`agents.baselines.search` finds them by the game.

They play better than a yardstick, give their reasons in the words of their game, or play games without exact values.
"""
