"""From episode records to numbers, in this order.

``results`` reads records into columns; ``references`` are the two ends of the normalised score's scale, and ``luck``
takes chance out of a return. ``scores`` makes the rows of one scenario's leaderboard, ``overall`` those over many,
``beside`` those of the other tables. ``comparison`` and ``pairs`` set agents side by side, and ``ratings`` those that
met; ``move_losses`` finds what moves cost. Intervals are :mod:`agents.common.intervals`; ``differences`` has the tests,
``stopping`` when a run has played enough, ``cache`` keeps slow results, and ``document`` is the shape in which
everything is shown. Begin at :mod:`benchmark.score.scores`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
