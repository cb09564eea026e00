"""Importing modules by name, from the working directory too, which scripts don't have on their path."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def from_here() -> Iterator[None]:
    """Let modules that are imported meanwhile lie in the working directory, before all other places."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
