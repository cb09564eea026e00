"""How robust scores are: seasons with unknown seeds, what texts do to a score, and how levels are measured.

``seasons`` is ``textbench season`` and what ``--season`` opens, ``tables`` are tables beside the scores, ``ladders``
measures levels and how few episodes find a player's, ``worst_case`` is ``textbench robust``.
"""
