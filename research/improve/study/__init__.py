"""The comparison of ways to make a player better: ``textbench reproduce --config improvers``.

``settings -> jobs (bases, tuning, learning at budgets, play) -> findings -> report``, on the machinery of
:mod:`research.jobs`. Every method begins at one base and gets equal budgets of tokens.
"""
