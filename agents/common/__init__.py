"""Shared parts of players, training and benchmark that know nothing of players.

Files: ``files`` (replaced as a whole), ``reading``, ``locking``, ``toml``, ``checksum``. What a user allows and hides:
``approvals``, ``redaction``. Command lines and the terminal: ``arguments``, ``keys``, ``interrupt``, ``clock``. Figures
with their ends: ``intervals``. None of them imports another room of agents.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
