"""Shared parts of players, training and benchmark that know nothing of players, and import no other room of agents.

Files: ``files`` (replaced as a whole), ``reading``, ``locking``, ``toml``. Secrets: ``redaction``.
Settings and the terminal: ``settings``, ``keys``, ``interrupt``, ``progress``. Figures with their ends: ``intervals``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
