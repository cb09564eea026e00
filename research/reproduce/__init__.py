"""The paper's experiment in miniature: ``textbench reproduce``.

``settings -> jobs (pretrain, train, play, control) -> reproduction -> claims -> report``, each job's result on disk:

* :mod:`settings` reads a recipe (``recipes/*.toml``): everything that decides the outcome is data;
* :mod:`jobs` says what has to be done and what waits for what, :mod:`work` does one of them, :mod:`schedule` does all
  in several processes, :mod:`display` shows how far they are;
* :mod:`timing` says how long it will take, from a table and from what this run's jobs took;
* :mod:`reproduction` reads what is on disk, :mod:`claims` judges the paper's claims from it (pure functions),
  :mod:`report` and :mod:`plots` write it down;
* :mod:`shipping` turns a finished run into the models that the package ships.
"""
