"""The paper's experiment with a pretrained model: ``textbench reproduce --config smollm2``.

``settings -> jobs (start, train, play) -> findings -> report``, on the machinery of :mod:`research.jobs`: every
job's result is on disk, and the same command resumes what was stopped.

* :mod:`settings` reads a recipe (``recipes/*.toml``): its parts, its warm starts, its trainings and who plays the fresh
  episodes are data;
* :mod:`jobs` says what has to be done and what waits for what, :mod:`pace` how long it takes;
* :mod:`work` does one job; :mod:`trl` is the training by TRL's GRPO, the baseline of the field;
* :mod:`findings` reads what is on disk and computes the figures from it, :mod:`report` and :mod:`plots` write them
  down;
* :mod:`command` is the command behind its options.
"""
