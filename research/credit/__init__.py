"""The instrument that measures credit, ``textbench credit``, and the study of credit, ``textbench reproduce --config
credit``.

The names of this package are the instrument's; they are loaded when they are used, and torch not before. The study is
::

    settings -> jobs (bases, stages, measurements, draws, tuning, training) -> findings -> report

on the machinery of :mod:`research.jobs`: every job's result is on disk, and the same command resumes a study.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
