"""Players without a language model: random, greedy and planning ones, and a person at the terminal.

Begin at :mod:`agents.baselines.scripted_player`, what they have in common. ``random`` plays anything, ``blind`` is what
a score of 0 means, ``human`` is a person. ``search`` makes ``greedy`` and ``planner`` of what is known of a game: its
yardstick, or a file in ``games``.
"""
