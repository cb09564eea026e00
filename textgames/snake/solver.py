"""Players of Snake: one that takes its nearest food, and one that looks ahead.

:class:`SnakeSearch` is the reference for scores, since the exact optimum of Snake is out of reach. The algorithm is
**policy rollout over food routes with sequential halving**. A route is a first move and an ordered list of food to
visit. Every route that a quick estimate finds promising is played to the end of the horizon on many simulated boards,
the better half of the routes is played on more, and so on; the value of an action is that of its best route. (Policy
rollout: Bertsekas, Tsitsiklis and Wu, "Rollout algorithms for combinatorial optimization", 1997. Sequential halving:
Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed bandits", 2013.)

The search knows what a player may know: the rules and settings, the board, how many rounds are left, and that built-in
opponents move at random. It plays ahead on its own boards with its own random numbers.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from textgames.bases import steps_to
from textgames.rounds import at_most
from textgames.snake.game import Snake
from textgames.snake.rules import ACTIONS, OFF_BOARD, SnakeState, move_table, neighbour_table
from textgames.snake.simulation import NO_TARGET, Simulation

DEPTH, NEAREST = 3, 5
"""Pieces of food in a route, at most, and of how many routes are made: those nearest to the snake."""

EARLY = 0.08  # the gain of eating a round earlier, as a part of the food's worth; for the quick estimate


class FoodRoute(NamedTuple):
    """What to do first, and which cells of food to visit then, in order."""

    action: int  # index into ACTIONS
    targets: tuple[int, ...]
    estimate: float


class SnakeSearch:
    """Chooses actions by simulating the routes that they begin, in a few milliseconds on a 10x10 board with one
    opponent.

    Args:
        boards: simulated boards in each stage, shared evenly by its routes.
        num_routes: routes that are tried in the first stage; at least two for every action, if there are so many.
        stages: how often routes are played, each time the better half of those before.
        horizon: rounds to look ahead if more are left, or there is no limit.
    """

    def __init__(
        self, game: Snake, *, boards: int = 192, num_routes: int = 8, stages: int = 2, horizon: int = 20
    ) -> None:
        for name, value in (("boards", boards), ("num_routes", num_routes), ("stages", stages), ("horizon", horizon)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        self.game, self.boards, self.num_routes = game, boards, num_routes
        self.stages, self.horizon = stages, horizon
        self.simulation = Simulation(game)
        self._moves = move_table(game.width, game.height)

    def choose(self, state: SnakeState, player: str, steps_left: int | None, rng: np.random.Generator) -> str:
        values = self.action_values(state, player, steps_left, rng)
        return max(ACTIONS, key=lambda action: values[action])

    def action_values(
        self, state: SnakeState, player: str, steps_left: int | None, rng: np.random.Generator
    ) -> dict[str, float]:
        """Return the estimated return, over the rest of the horizon, of every action.

        The player's snake has to live, and a round to be left (``None``: no limit). Equal generators give equal values.
        """
        snake = self.game.players.index(player)
        if not state.snakes[snake]:
            raise ValueError(f"{player} is dead and has no move to choose")
        if steps_left is not None and steps_left < 1:
            raise ValueError(f"steps_left must be at least 1, or None for no limit, got {steps_left!r}")
        rounds = at_most(self.horizon, steps_left)
        values = dict.fromkeys(ACTIONS, self.game.death_reward + self.game.step_reward)
        routes = self._routes(state, snake, rounds)
        if routes:
            values.update(self._evaluate(routes, state, snake, rounds, rng))
        return values

    def _evaluate(
        self, routes: list[FoodRoute], state: SnakeState, snake: int, rounds: int, rng: np.random.Generator
    ) -> dict[str, float]:
        """Sequential halving; ``{action: value}`` of the actions that the routes begin with."""
        first = np.array([route.action for route in routes])
        targets = np.full((len(routes), DEPTH), NO_TARGET)
        for row, route in enumerate(routes):
            targets[row, : len(route.targets)] = self.simulation.inner[list(route.targets)]
        values, best, total, played = dict[str, float](), dict[str, float](), np.zeros(len(routes)), 0
        for stage in range(self.stages):
            repeats = max(1, self.boards // len(first))
            total = total + self.simulation.play(state, snake, first, targets, repeats, rounds, rng).sum(axis=1)
            played += repeats
            best = {}
            for action, mean in zip(first, total / played, strict=True):
                best[ACTIONS[action]] = max(best.get(ACTIONS[action], -np.inf), float(mean))
            values |= best
            if len(first) <= 2 or stage == self.stages - 1:
                break
            keep = np.argsort(-total, kind="stable")[: (len(first) + 1) // 2]
            first, targets, total = first[keep], targets[keep], total[keep]
        # an action that was given up isn't better than those that were kept, whatever its few boards said
        ceiling = min(best.values())
        return {name: best.get(name, min(value, ceiling)) for name, value in values.items()}

    def _routes(self, state: SnakeState, snake: int, rounds: int) -> list[FoodRoute]:
        """Return the most promising routes; every action but certain death has one with targets and one without."""
        bodies = {cell for other in state.snakes for cell in other}
        head = state.snakes[snake][0]
        needed: list[FoodRoute] = []
        others: list[FoodRoute] = []
        for index, action in enumerate(ACTIONS):
            cell = self._moves[action][head]
            if cell == OFF_BOARD or cell in bodies:
                continue
            routes = sorted(self._routes_after(index, cell, state, rounds), key=lambda route: -route.estimate)
            needed += [FoodRoute(index, (), 0.0), *routes[:1]]
            others += routes[1:]
        others.sort(key=lambda route: -route.estimate)
        return needed + others[: max(0, self.num_routes - len(needed))]

    def _routes_after(self, action: int, cell: int, state: SnakeState, rounds: int) -> list[FoodRoute]:
        """Return every order of visiting some of the food near ``cell`` that ends within the horizon."""
        width, worth = self.game.width, dict[int, float]()
        for cells, reward in zip(state[1:], self.game.food_rewards, strict=True):
            if reward > 0:
                worth.update(dict.fromkeys(cells, reward))

        def distance(a: int, b: int) -> int:
            return abs(a // width - b // width) + abs(a % width - b % width)

        near = sorted((food for food in worth if food != cell), key=lambda food: distance(cell, food))[:NEAREST]
        routes = []
        for length in range(1, DEPTH + 1):
            for targets in permutations(near, length):
                time, at, estimate = 1, cell, 0.0
                for target in targets:
                    time += distance(at, target)
                    at = target
                    estimate += worth[target] * (1 + EARLY * (rounds - time))
                if time <= rounds:
                    routes.append(FoodRoute(action, targets, estimate))
        return routes


def greedy_action(state: SnakeState, player: str, game: Snake) -> str:
    """Return the move towards the nearest food that is worth having, around what is on the board now.

    Distances are those of a breadth-first search that enters neither snakes nor harmful food. Among the moves that are
    no certain death, those onto harmful food come last; then the nearer to food the better; then the order of ACTIONS.
    """
    snake = state.snakes[game.players.index(player)]
    if not snake:
        raise ValueError(f"{player} is dead and has no move to choose")
    moves = move_table(game.width, game.height)
    bodies = {cell for other in state.snakes for cell in other}
    goals, harmful = set[int](), set[int]()
    for cells, worth in zip(state[1:], game.food_rewards, strict=True):
        if worth > 0:
            goals.update(cells)
        elif worth < 0:
            harmful.update(cells)
    distances = steps_to(goals, neighbour_table(game.width, game.height), bodies | harmful)
    far = game.num_cells

    def cost(action: str) -> tuple[bool, bool, int]:
        cell = moves[action][snake[0]]
        return cell == OFF_BOARD or cell in bodies, cell in harmful, distances.get(cell, far)

    return min(ACTIONS, key=cost)
