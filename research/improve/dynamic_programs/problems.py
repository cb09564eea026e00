"""Decision problems in words, each a file of ``examples/problems``: a description, and the program that it asks for."""

import json
import runpy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "problems"
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("*.py")))


class Problem:
    """One of them: ``text`` is what a writer reads."""

    def __init__(self, name: str) -> None:
        self._names = runpy.run_path(str(FOLDER / f"{name}.py"))
        self.text = str(self._names["__doc__"]).strip()

    def optimum(self, steps: int | None = None, start: Any = None) -> Fraction:
        """Return the true optimum by backward induction in fractions; start and horizon are its own if not given."""
        told = self._names["problem"]()

        @cache
        def value(key: str, left: int) -> Fraction:
            state, found = json.loads(key), list[Fraction]()
            for action in self._names["actions"](state) if left else ():
                worth = Fraction(0)
                for chance, after, reward, over in self._names["outcomes"](state, action):
                    later = 0 if over else told["discount"] * value(json.dumps(after), left - 1)
                    worth += chance * (reward + later)
                found.append(worth)
            return max(found, default=Fraction(0))

        return value(json.dumps(told["start"] if start is None else start), steps or told["horizon"])
