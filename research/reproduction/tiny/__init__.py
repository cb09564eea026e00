"""How the tiny models that ship were made: ``python -m research.reproduction.tiny``, with :mod:`agents.tiny`."""
