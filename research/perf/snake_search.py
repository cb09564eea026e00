"""How strong is the reference player of Snake? Paired returns on the scenarios' own seeds.

Plays the planner, the search with its default budget, ``greedy``, ``random``, and the search with ten times the boards
and three times the routes. Prints each one's mean return, and its paired difference to the planner, with 95% intervals
(normal, over episodes), and CPU milliseconds per decision, the game's own included. The last row tells how far the
default budget is from what more of it would give.

    python research/perf/snake_search.py [--episodes 200] [--scenario snake-long ...]
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from agents.common import half_interval
from textgames import SCENARIOS
from textgames.snake import Snake, SnakeSearch, SnakeState, greedy_action

ME = "player_0"
Choose = Callable[[SnakeState, int, np.random.Generator], str]


def players(game: Snake) -> dict[str, Choose]:
    search, large = SnakeSearch(game), SnakeSearch(game, boards=1920, num_routes=24, stages=3)
    return {
        "planner": lambda state, left, rng: search.choose(state, ME, left, rng),
        "greedy": lambda state, left, rng: greedy_action(state, ME, game),
        "random": lambda state, left, rng: game.actions[int(rng.random() * 4)],
        "planner, 10x": lambda state, left, rng: large.choose(state, ME, left, rng),
    }


class Move(NamedTuple):
    state: SnakeState
    action: str
    left: int  # rounds, this one included
    paid: float
    after: SnakeState
    over: bool


def episode(game: Snake, choose: Choose, horizon: int, seed: int) -> Iterator[Move]:
    """Yield the moves of a training seed or a scenario's; the player's random numbers are its own."""
    rng = np.random.default_rng(seed)
    state, over = game.initial_state(rng), False
    for left in range(horizon, 0, -1):
        if over:
            break
        action = choose(state, left, np.random.default_rng([seed, left]))
        after, rewards, over = game.transition(state, {ME: action}, rng)
        yield Move(state, action, left, rewards[ME], after, over)
        state = after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--scenario", nargs="+", default=["snake", "snake-long", "snake-poison"])
    options = parser.parse_args()
    for name in options.scenario:
        scenario = SCENARIOS[name]
        game = Snake(**scenario.kwargs)
        if len(game.players) > 1:
            parser.error(f"{name} has {len(game.players)} players; this script plays scenarios with one")
        print(f"{name}: {options.episodes} episodes from seed {scenario.first_seed}")
        reference: np.ndarray | None = None
        for player, choose in players(game).items():
            began = time.process_time()
            seeds = [scenario.seed(number) for number in range(options.episodes)]
            played = [list(episode(game, choose, scenario.horizon, seed)) for seed in seeds]
            seconds = time.process_time() - began
            returns = np.array([sum(move.paid for move in moves) for moves in played])
            reference = returns if reference is None else reference
            told, difference = (
                f"{each.mean():+.3f} ± {half_interval(each):.3f}" for each in (returns, returns - reference)
            )
            alive = np.mean([bool(moves[-1].after.snakes[0]) for moves in played])
            milliseconds = 1000 * seconds / sum(map(len, played))
            line = f"  {player:12} return {told}   to the planner {difference}   alive {alive:.0%}"
            print(f"{line}   {milliseconds:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
