"""A player of Snake that doesn't look ahead further than its nearest food: the baseline for players that do."""

from collections.abc import Collection

from textgames.snake.game import Snake
from textgames.snake.rules import ACTIONS, OFF_BOARD, Cells, SnakeState, move_table, neighbour_table


def greedy_action(state: SnakeState, player: str, game: Snake) -> str:
    """The move towards the nearest food that is worth having, around what is on the board now.

    Distances are those of a breadth-first search that enters neither snakes nor harmful food. Of the moves that are no
    certain death, those onto harmful food come last; then the nearer to food the better; what is equal is decided by
    the order of ACTIONS. What other snakes are going to do isn't considered.

    Raises:
        ValueError: the player's snake is dead.
    """
    snake = state.snakes[game.players.index(player)]
    if not snake:
        raise ValueError(f"{player} is dead and has no move to choose")
    config = game.config
    moves = move_table(config.width, config.height)
    bodies = {cell for other in state.snakes for cell in other}
    goals, harmful = set[int](), set[int]()
    for cells, worth in zip(state[1:], (config.apple_reward, config.banana_reward, config.fire_reward), strict=True):
        if worth > 0:
            goals.update(cells)
        elif worth < 0:
            harmful.update(cells)
    distances = _distances(goals, bodies | harmful, neighbour_table(config.width, config.height))
    far = config.num_cells

    def cost(action: str) -> tuple[bool, bool, int]:
        cell = moves[action][snake[0]]
        return cell == OFF_BOARD or cell in bodies, cell in harmful, distances.get(cell, far)

    return min(ACTIONS, key=cost)


def _distances(goals: Collection[int], blocked: Collection[int], neighbours: tuple[Cells, ...]) -> dict[int, int]:
    """``{cell: steps to the nearest goal}`` for every cell that a goal can be reached from."""
    distances = dict.fromkeys(goals, 0)
    frontier = list(goals)
    steps = 0
    while frontier:
        steps += 1
        reached = {cell for at in frontier for cell in neighbours[at] if cell not in distances and cell not in blocked}
        distances.update(dict.fromkeys(reached, steps))
        frontier = list(reached)
    return distances
