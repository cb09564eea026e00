"""Boards of Sokoban, drawn by the generators of other projects and kept as text: a line for each, row by row."""

import gzip
import inspect
import random
from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

FOLDER = Path(__file__).with_name("boards")
FLOORS, STATES = "#_T", "#_TBBP"  # gym-sokoban's numbers of what doesn't move, and of what is there, 3 and 4 boxes


def generator(path: Path) -> ModuleType:
    """Run a generator's file, such as gym-sokoban's ``envs/room_utils.py``, without its package, which needs more."""
    spec = spec_from_file_location("generator", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"{path} isn't a file of Python with generate_room(dim, num_steps, num_boxes, ...)")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(module: ModuleType, size: int, boxes: int, arguments: Mapping[str, int]) -> Iterator[str]:
    """Yield a board for each seed from 0 on, but for those that the generator gives up."""
    seeded = "seed" in inspect.signature(module.generate_room).parameters
    for seed in count():
        random.seed(seed)
        np.random.seed(seed)
        given = {**arguments, "seed": seed} if seeded else dict(arguments)
        try:
            # gym-sokoban's SokobanEnv walks so many steps, and so do the projects that build on it
            drawn = module.generate_room(dim=(size, size), num_steps=int(1.7 * 2 * size), num_boxes=boxes, **given)
        except (RuntimeError, RuntimeWarning):
            continue
        yield _text(*drawn[:2])


def _text(fixed: Any, state: Any) -> str:
    """Return a board in the signs of our own game, Sokoban."""
    cells = [(FLOORS[int(f)], STATES[int(s)]) for f, s in zip(fixed.ravel(), state.ravel(), strict=True)]
    return "".join({"B": "X", "P": "p"}.get(s, s) if f == "T" else s for f, s in cells)


def write(name: str, boards: list[str]) -> None:
    """Keep the boards of a setting."""
    text = "".join(f"{board}\n" for board in boards).encode()
    FOLDER.joinpath(f"{name}.txt.gz").write_bytes(gzip.compress(text, mtime=0))


def read(name: str) -> list[str]:
    """Return the boards of a setting."""
    if not FOLDER.joinpath(f"{name}.txt.gz").exists():
        raise ValueError(f"no boards of {name} are kept; draw them: --draw {name} FILE")
    return gzip.decompress(FOLDER.joinpath(f"{name}.txt.gz").read_bytes()).decode().split()
