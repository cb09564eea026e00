"""The comparison of ways to make a player better: ``textbench reproduce --config improvers``.

``settings -> jobs (bases, tuning, learning at budgets, play) -> findings -> report``, on the machinery of
:mod:`research.jobs`. Every method begins at one base and gets equal budgets of tokens.

* :mod:`settings` reads a recipe (``recipes/*.toml``), :mod:`jobs` says what has to be done and what waits for what;
* :mod:`work` does one job, and tells what a player loses and costs, in the game and in its twin; :mod:`learning` lets a
  method spend a budget and counts what it really spent;
* :mod:`findings` computes differences with their corrections, :mod:`report` writes them down;
* :mod:`command` is the command behind its options.
"""
