"""Players made better, and players made of others: improvers, programs in a sandbox, players around others.

``textbench improve METHOD`` begins at :mod:`research.improve.cli`. ``entries`` are the players that ``textbench``
finds, from ``programs`` and ``around``; ``study`` compares methods at equal tokens.
"""
