"""A picture of the board, as an SVG: the steps that a method blames wrongly.

Every cell has a triangle for each direction, coloured by the mean advantage over its visits: the true one, the one that
a method assigned, and the difference. What a method assigned is multiplied by the one number that brings it nearest to
the truth. A black edge is a move that was assigned the wrong sign.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from agents.msgrpo.credit import Credit
from research.credit.instrument.fidelity import NOTHING, per_step
from research.credit.instrument.instrument import Instrument
from textgames import TSMG

DIRECTIONS = {name: name for name in ("left", "right", "up", "down")}
DIRECTIONS |= {"west": "left", "east": "right", "north": "up", "south": "down"}

_CELL, _GAP, _TOP, _LEFT = 44, 28, 40, 16
_HEAD = 40  # two lines of text
_ABOVE, _BELOW = (0, 114, 178), (213, 94, 0)  # Okabe's and Ito's blue and vermilion, told apart with any colour vision
_CORNERS = {
    "up": ((0, 0), (1, 0)), "right": ((1, 0), (1, 1)), "down": ((1, 1), (0, 1)), "left": ((0, 1), (0, 0)),
}  # fmt: skip


class Move(NamedTuple):
    """The visits of a move from a cell, and the means over them of its assigned and its true advantage."""

    visits: float
    assigned: float
    true: float


Moves = dict[tuple[int, int, str], Move]
"""``{(row, column, direction): move}``."""


def board_picture(instrument: Instrument, methods: Sequence[str]) -> str:
    """Draw what some measured methods assigned on the start whose true advantages differ most, as an SVG document.

    Equal measurements give equal documents. Raises ValueError as :func:`check_drawable` does.
    """
    game = instrument.setting.game()
    check_drawable(game)
    found = {name: _moves(instrument, game, instrument.credited[name].credits) for name in methods}
    spread = [sum(move.visits * move.true**2 for move in moves.values()) for moves in found[methods[0]]]
    start = int(np.argmax(spread))
    board = game.board(instrument.setting.starts()[start])
    return _document(game, board, {name: moves[start] for name, moves in found.items()}, instrument)


def check_drawable(game: TSMG[Any]) -> None:
    """Raise a ValueError if a game isn't one of a player who moves on a board."""
    known = game.has_board and len(game.players) == 1
    if not (known and _marks(game) and any(action in DIRECTIONS for action in game.actions)):
        raise ValueError(
            f"{type(game).__name__} can't be drawn: pictures are of games in which one player moves on a board, such "
            "as frozen-lake, cliff-walking, sokoban and taxi"
        )


def _marks(game: TSMG[Any]) -> str:
    return "".join(mark for mark, what in game.legend.items() if what.split()[0] in ("player", "taxi"))


def _moves(instrument: Instrument, game: TSMG[Any], credits: Sequence[Credit]) -> list[Moves]:
    """Return the mean advantage of every move of every start; valid responses alone, over all steps and batches."""
    layouts = instrument.setting.layouts()
    sums: list[dict[tuple[int, int, str], np.ndarray]] = [{} for _ in layouts]
    marks, places = _marks(game), dict[Any, tuple[int, int] | None]()
    for batch, credit in zip(instrument.batches, credits, strict=True):
        for trajectory, own in zip(batch.trajectories, credit.advantages, strict=True):
            task = trajectory.task
            start = layouts.index(task.layout_seed) if task is not None and task.layout_seed is not None else 0
            steps = zip(per_step(own), instrument.truth.advantages(trajectory), strict=True)
            for t, (assigned, true) in enumerate(steps):
                state, direction = trajectory.states[t], DIRECTIONS.get(trajectory.actions[t])
                if state not in places:
                    rows = enumerate(game.board(state))
                    cells = [(row, column) for row, line in rows for column, mark in enumerate(line) if mark in marks]
                    places[state] = cells[0] if cells else None
                place = places[state]
                if place is not None and direction is not None and trajectory.valid[t]:
                    total = sums[start].setdefault((*place, direction), np.zeros(3))
                    total += (1.0, assigned, true)
    return [{key: Move(n, x / n, y / n) for key, (n, x, y) in own.items()} for own in sums]


def _document(game: TSMG[Any], board: tuple[str, ...], found: Mapping[str, Moves], instrument: Instrument) -> str:
    width, height = len(board[0]) * _CELL, len(board) * _CELL
    largest = max([abs(move.true) for moves in found.values() for move in moves.values()], default=0.0) or 1.0
    parts: list[str] = []
    for number, (name, raw) in enumerate(found.items()):
        squares = sum(move.visits * move.assigned**2 for move in raw.values())
        products = sum(move.visits * move.assigned * move.true for move in raw.values())
        factor = products / squares if squares > 0 else 0.0  # brings what was assigned nearest to the truth
        moves = {key: move._replace(assigned=factor * move.assigned) for key, move in raw.items()}
        top = _HEAD + _TOP + number * (height + _TOP)
        panels = {
            "true advantage": {key: move.true for key, move in moves.items()},
            f"{name}, times {factor:.3g}": {key: move.assigned for key, move in moves.items()},
            f"{name} minus true": {key: move.assigned - move.true for key, move in moves.items()},
        }
        for column, (title, values) in enumerate(panels.items()):
            left = _LEFT + column * (width + _GAP)
            parts.append(f'<text x="{left}" y="{top - 6}" font-size="11">{escape(title)}</text>')
            parts += _panel(board, values, moves, (left, top), largest, wrong=column > 0)
    size = (2 * _LEFT + 3 * width + 2 * _GAP, _HEAD + _TOP + len(found) * (height + _TOP))
    policy, scenario = escape(instrument.policy.name), escape(instrument.setting.scenario.name)
    lines = [
        f"{policy} on {scenario}: the mean advantage of every move",
        f"blue: up to {largest:.3g}; red: down to -{largest:.3g}; black edge: assigned the wrong sign",
    ]
    head = [f'<text x="{_LEFT}" y="{18 + 18 * n}" font-size="12">{line}</text>' for n, line in enumerate(lines)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join([*head, *parts]) + "\n</svg>\n"
    )


def _panel(
    board: tuple[str, ...],
    values: Mapping[tuple[int, int, str], float],
    moves: Moves,
    corner: tuple[int, int],
    largest: float,
    *,
    wrong: bool,
) -> list[str]:
    parts: list[str] = []
    look, bold = 'fill="#f2f2f2" stroke="#999999" stroke-width="0.5"', 'text-anchor="middle" font-weight="bold"'
    for row, line in enumerate(board):
        for column, character in enumerate(line):
            x, y = corner[0] + column * _CELL, corner[1] + row * _CELL
            parts.append(f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" {look}/>')
            there = [place for direction in _CORNERS if (place := (row, column, direction)) in values]
            parts += [_triangle((x, y), at[2], values[at], moves[at], largest, wrong=wrong) for at in there]
            if character not in "_. ":
                middle = f'x="{x + _CELL / 2:g}" y="{y + _CELL / 2 + 4:g}"'
                parts.append(f'<text {middle} font-size="12" {bold}>{escape(character)}</text>')
    return parts


def _triangle(corner: tuple[int, int], direction: str, value: float, move: Move, largest: float, *, wrong: bool) -> str:
    points = [(0.5, 0.5), *_CORNERS[direction]]
    path = " ".join(f"{corner[0] + _CELL * px:g},{corner[1] + _CELL * py:g}" for px, py in points)
    strength, end = min(1.0, abs(value) / largest), _ABOVE if value > 0 else _BELOW
    colour = "#" + "".join(f"{round(255 + (part - 255) * strength):02x}" for part in end)
    opposite = min(abs(move.assigned), abs(move.true)) > NOTHING and move.assigned * move.true < 0
    edge = 'stroke="black" stroke-width="1.6"' if wrong and opposite else 'stroke="#bbbbbb" stroke-width="0.4"'
    told = f"{direction}: true {move.true:+.3f}, assigned {move.assigned:+.3f}, {move.visits:g} visits"
    return f'<polygon points="{path}" fill="{colour}" {edge}><title>{told}</title></polygon>'
