"""What players, training and benchmark need alike, and what says nothing of players.

Writing and reading: ``files`` (whole or not at all), ``toml`` (settings, every ``--set``), ``checksum`` (of a line).
What a user allows and hides: ``approvals``, ``redaction``. The terminal: ``keys``, ``interrupt``, ``clock``. Figures
with their ends: ``intervals``. What other packages add: ``entry_points``. None of them imports another room of agents.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
