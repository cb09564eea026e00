"""The instrument that measures methods of credit, ``textbench credit``, and the study of credit.

The names of this package are the instrument's (:mod:`research.credit.instrument`). They are loaded when they are used,
and torch is not loaded before. The study is ``textbench reproduce --config credit``::

    settings -> jobs (bases, stages, measurements, draws, tuning, training) -> findings -> report

on the machinery of :mod:`research.jobs`: every job's result is on disk, and the same command resumes if it was
stopped.

* :mod:`settings` reads a recipe (``recipes/*.toml``), :mod:`jobs` says what has to be done and what waits for what;
* :mod:`work` does one job: :mod:`training` trains at a budget of tokens, and :mod:`measuring` puts methods and draw
  rules under the instrument;
* :mod:`dosed` is credit of a known quality, by intervention, and :mod:`dose` reads what it taught;
* :mod:`questions` asks what else an exact gradient decides, in an experiment of its own on the :mod:`games` of this;
* :mod:`findings` reads what is on disk and computes the figures from it, :mod:`report` and :mod:`plots` write them
  down;
* :mod:`command` is the command behind its options.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
