"""Players without a language model: random, greedy and planning ones, and a person at the terminal.

Begin at :mod:`agents.baselines.scripted_player`. ``search`` makes ``greedy`` and ``planner`` of what is known of a
game: its yardstick, or a file in ``games``.
"""
