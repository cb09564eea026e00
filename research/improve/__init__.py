"""Players made better, and players made of others: improvers, programs in a sandbox, players around others.

``textbench improve METHOD`` begins at :mod:`research.improve.cli`. ``improvers`` lists the ``methods``, ``task`` is
what they are given (``plays`` and ``questions``, paid from a ``budget``), ``keeping`` is the folder. ``entries`` are
the players that ``textbench`` finds, from ``programs`` and ``around``. ``study`` compares methods at equal tokens.
"""
