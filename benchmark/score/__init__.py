"""From episode records to numbers; begin at :mod:`benchmark.score.scores`.

``results`` reads records into columns; ``references`` are the two ends of the normalised score's scale, and ``luck``
takes chance out of a return. ``scores`` makes the rows of one scenario's leaderboard, ``overall`` those over many,
``beside`` those of the other tables. ``comparison`` and ``pairs`` set agents side by side, by the tests of
``differences``, and ``ratings`` those that met. ``document`` is the shape in which everything is shown.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
