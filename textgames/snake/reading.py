"""The inverse of Snake's observation map, from text to state, for players that look ahead and see nothing but text."""

import re

from textgames.snake.game import Snake
from textgames.snake.rules import Cells, SnakeState, neighbour_table
from textgames.snake.text import APPLE, BANANA, BODY, FIRE, HEADS

_CELL = re.compile(r"\((\d+), (\d+)\)")
_LINE = re.compile(r"^(Apples|Bananas|Fires|Enemy (\d)|You)\b[^:\n]*: (.*)$", re.MULTILINE)


def read_observation(text: str, game: Snake) -> SnakeState:
    """Read the state that an observation shows; a ValueError if something doesn't belong to an observation of this
    game.

    With coordinates, the result is exactly the state, its snakes in the reader's order: the reader is snake 0 (``()``
    if it is dead). From the grid alone, it isn't known which body cell belongs to which snake in which order: bodies
    are then paths from the heads that together cover all body cells, or most of them if :data:`SEARCH_LIMIT` is
    reached.
    """
    return _from_coordinates(text, game) if game.text.coordinates else _from_grid(text, game)


def _from_coordinates(text: str, game: Snake) -> SnakeState:
    items: dict[str, Cells] = {}
    for match in _LINE.finditer(text):
        label, _, listed = match.groups()
        items[label] = tuple([_cell(x, y, game) for x, y in _CELL.findall(listed)])
    if "You" not in items:
        raise ValueError(f"an observation with coordinates has a line 'You: ...', got {text!r}")
    snakes = [items.get("You", ())]
    snakes += [items.get(f"Enemy {number}", ()) for number in range(2, game.num_snakes + 1)]
    state = SnakeState(tuple(snakes), *(tuple(sorted(items.get(kind, ()))) for kind in ("Apples", "Bananas", "Fires")))
    taken = [cell for cells in (*state.snakes, *state[1:]) for cell in cells]
    if len(set(taken)) < len(taken):
        raise ValueError(f"two things are on one cell in the observation {text!r}")
    return state


def _cell(x: str, y: str, game: Snake) -> int:
    if int(x) >= game.width or int(y) >= game.height:
        raise ValueError(f"({x}, {y}) is not on a board of {game.width} by {game.height} cells")
    return int(y) * game.width + int(x)


def _from_grid(text: str, game: Snake) -> SnakeState:
    rows = text[text.rfind(":\n") + 2 :].split("\n")[: game.height]
    cells = [row.split()[1:] if game.text.axes else row.split() for row in reversed(rows)]
    if len(cells) != game.height or any(len(row) != game.width for row in cells):
        raise ValueError(f"the observation's grid isn't {game.width} by {game.height} cells: {text!r}")
    found: dict[str, list[int]] = {}
    for cell, character in enumerate(character for row in cells for character in row):
        found.setdefault(character, []).append(cell)
    heads = [found.get(digit, []) for digit in HEADS[: game.num_snakes]]
    bodies = share_bodies([head[0] for head in heads if head], found.get(BODY, []), game)
    return SnakeState(
        tuple(bodies.pop(0) if head else () for head in heads),
        *(tuple(found.get(character, ())) for character in (APPLE, BANANA, FIRE)),
    )


# ---------------------------------------------------------------- whose body is it?

SEARCH_LIMIT = 20_000  # partial assignments of body cells that are looked at before the best one so far is taken


def share_bodies(heads: list[int], body_cells: list[int], game: Snake) -> list[Cells]:
    """Return paths from ``heads`` that cover ``body_cells``, one each, in order; depth first, longest paths first.

    Cells that no path reaches within the limit are put at the end of the last snake, so that they still block the
    board.
    """
    if not heads:
        return []
    neighbours = neighbour_table(game.width, game.height)
    best: tuple[int, list[Cells]] = (len(body_cells), [(head,) for head in heads])
    # (cells left, finished snakes, the snake that is being followed)
    stack: list[tuple[frozenset[int], tuple[Cells, ...], Cells]] = [(frozenset(body_cells), (), (heads[0],))]
    for _ in range(SEARCH_LIMIT):
        if not stack or not best[0]:
            break
        left, finished, snake = stack.pop()
        done = (*finished, snake)
        if len(left) < best[0]:
            best = len(left), [*done, *((head,) for head in heads[len(done) :])]
        if len(done) < len(heads):
            stack.append((left, done, (heads[len(done)],)))
        stack += [(left - {cell}, finished, (*snake, cell)) for cell in neighbours[snake[-1]] if cell in left]
    snakes = best[1]
    covered = {cell for snake in snakes for cell in snake}
    snakes[-1] += tuple(cell for cell in body_cells if cell not in covered)
    return snakes
