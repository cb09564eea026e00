"""Statements about a board in short English, and whether they are true.

The grammar that the demonstrator speaks, and that any model's reasoning can be checked against::

    reasoning  = statement {(", " | "; ") statement}
    statement  = target " is " direction [" and " direction]     "goal is right and down", "nearest apple is left"
               | target cell " is " direction [" and " ...]      "apple (6, 5) is left and up"
               | direction {" " direction} [cell] " is " kind    "right is ice", "right down is hole"
               | ("head " | "player ") cell                      "head (7, 3)"

A target without a cell is the nearest one, by moves without obstacles; any of those that are equally near. Directions
before a kind are moves, and a cell behind them the one that they lead to. Boards are read from the grid that
observations show (:class:`agents.tiny.demonstrator.Sight`).
"""

import re
from typing import NamedTuple

from agents.tiny import Sight, directions_of

TARGETS = ("goal", "apple", "banana", "fire", "enemy")

_DIRECTED = r" is (left|right|up|down)(?: and (left|right|up|down))?"
_WHERE = re.compile(r"(?:the )?(?:nearest )?(\w+)" + _DIRECTED)
_THERE = re.compile(r"(?:the )?(\w+) \((\d+), (\d+)\)" + _DIRECTED)
_HEAD = re.compile(r"(head|player) \((\d+), (\d+)\)")
_NEXT = re.compile(r"((?:left|right|up|down)(?: (?:left|right|up|down)){0,5})(?: \((-?\d+), (-?\d+)\))? is (\w+)")
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)


class Truth(NamedTuple):
    """Counts of a reasoning's statements that hold, of those that don't, and of its parts that are no statements."""

    true: int
    false: int
    unreadable: int

    @property
    def share(self) -> float:
        """True statements among all parts; ``nan`` if nothing is stated."""
        total = sum(self)
        return self.true / total if total else float("nan")


def check(think_text: str, observation: str) -> Truth:
    """Count the true, false and unreadable parts of a think tag's text, or of a whole response that has one."""
    sight = Sight.of(observation)
    inside = _THINK.search(think_text)
    text = inside[1] if inside else "" if "<" in think_text else think_text
    parts = [part.strip().rstrip(".").lower() for part in re.split(r",(?! ?-?\d+\))|[;\n]", text)]
    verdicts = [_holds(part, sight) for part in parts if part]
    return Truth(verdicts.count(True), verdicts.count(False), verdicts.count(None))


def _holds(statement: str, sight: Sight) -> bool | None:
    """Return whether one statement holds; ``None`` if it isn't one."""
    beside = _NEXT.fullmatch(statement)
    if beside is not None:
        way = beside[1].split()
        named = (int(beside[2]), int(beside[3])) if beside[2] else sight.cell(*way)
        return named == sight.cell(*way) and sight.beside(*way) == beside[4]
    own = _HEAD.fullmatch(statement)
    if own is not None:
        return own[1] == sight.own and sight.head == (int(own[2]), int(own[3]))
    there = _THERE.fullmatch(statement)
    if there is not None and there[1] in TARGETS:
        cell = (int(there[2]), int(there[3]))
        offset = directions_of(cell[0] - sight.head[0], cell[1] - sight.head[1])
        return sight.kinds.get(cell) == there[1] and set(offset) == {name for name in there.groups()[3:] if name}
    where = _WHERE.fullmatch(statement)
    if where is None or where[1] not in TARGETS:
        return None
    told = {direction for direction in where.groups()[1:] if direction}
    return any(set(directions) == told for directions in sight.nearest(where[1]))
