"""Making of the tiny models that ship, with :mod:`agents.tiny`: ``python -m research.reproduction.tiny --out DIR``."""
