"""From episode records to numbers, in this order.

``results`` reads records into columns; ``references`` are the two ends of the normalised score's scale, and ``luck``
takes chance out of a return. ``scores`` makes the rows of one scenario's leaderboard, ``overall`` those over many.
``comparing`` sets agents side by side, ``texts`` a game beside itself in other words; ``move_losses`` says what moves
cost. ``statistics`` has the estimates of all of them and ``differences`` the tests, ``stopping`` when a run has played
enough, ``cache`` keeps what takes long, and ``document`` is the shape in which everything is shown. Begin at
:mod:`benchmark.score.scores`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
