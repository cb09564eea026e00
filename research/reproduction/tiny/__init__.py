"""How the tiny models that ship were made: ``python -m research.reproduction.tiny --out DIR``.

The training itself is :mod:`agents.tiny`, since post-training may begin with it. The command
writes a model with its card, which ``textbench run`` plays, and :mod:`statements` tells how much of a model's reasoning
is true of the board.
"""
