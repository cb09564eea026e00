"""Search players that know one game, or games of one kind; :mod:`agents.baselines.search` finds them by the game.

A game with a yardstick needs none. These play better than it, give their reasons in the words of their game, or play
games without exact values. Begin at :mod:`agents.baselines.games.frozen_lake`.
"""
