"""The paper's experiment in miniature: ``textbench lab reproduce``.

``settings -> jobs (pretrain, train, play, control) -> reproduction -> claims -> report``, on the machinery of
:mod:`research.jobs`:

* :mod:`settings` reads a recipe (``recipes/*.toml``): everything that decides the outcome is data;
* :mod:`jobs` says what has to be done and what waits for what, :mod:`work` does one of them, :mod:`pace` says how long
  each typically takes;
* :mod:`reproduction` reads what is on disk, :mod:`claims` judges the paper's claims from it (pure functions),
  :mod:`report` and :mod:`plots` write it down;
* :mod:`shipping` turns a finished run into the models that the package ships;
* :mod:`command` is the command behind its options.
"""
