"""Whose are the body cells of a drawn board? A drawing shows heads by number and all bodies alike."""

from textgames.snake.rules import Cells, SnakeConfig, neighbour_table

SEARCH_LIMIT = 20_000
"""Partial assignments of body cells that are looked at before the best one so far is taken."""


def share_bodies(heads: list[int], body_cells: list[int], config: SnakeConfig) -> list[Cells]:
    """Paths from ``heads`` that cover ``body_cells``, one each, in order.

    Depth first, longest paths first. Cells that no path reaches within the limit are put at the end of the last
    snake, so that they still block the board.
    """
    if not heads:
        return []
    neighbours = neighbour_table(config.width, config.height)
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
