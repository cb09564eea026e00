"""How strong is the reference player of Snake? Paired returns on the scenarios' own seeds.

Plays ``random``, ``greedy``, the search with its default budget, and the search with ten times the boards and three
times the routes. Prints each one's mean return, and its paired difference to the default search, with 95% intervals
(normal, over episodes), and CPU milliseconds per decision. The last row tells how far the default budget is from what
more of it would give.

    python research/perf/snake_search.py [--episodes 200] [--scenario snake-long ...]
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from agents.common import half_interval
from textgames import SCENARIOS, Scenario
from textgames.snake import Snake, SnakeSearch, SnakeState, greedy_action

Choose = Callable[[SnakeState, int, np.random.Generator], str]


class Result(NamedTuple):
    returns: np.ndarray  # (episodes,)
    alive: float
    milliseconds: float  # of CPU time, per decision


def players(game: Snake) -> Mapping[str, Choose]:
    search, large = SnakeSearch(game), SnakeSearch(game, boards=1920, num_routes=24, stages=3)
    return {
        "search": lambda state, left, rng: search.choose(state, "player_0", left, rng),
        "greedy": lambda state, left, rng: greedy_action(state, "player_0", game),
        "random": lambda state, left, rng: game.actions[int(rng.random() * 4)],
        "search, 10x": lambda state, left, rng: large.choose(state, "player_0", left, rng),
    }


def play(scenario: Scenario, game: Snake, choose: Choose, episodes: int) -> Result:
    """Play the scenario's first episodes; the player's random numbers are its own."""
    returns, alive, decisions, seconds = [], 0, 0, 0.0
    for episode in range(episodes):
        rng = np.random.default_rng(scenario.seed(episode))
        state, total = game.initial_state(rng), 0.0
        for t in range(scenario.horizon):
            began = time.process_time()
            action = choose(state, scenario.horizon - t, np.random.default_rng([scenario.seed(episode), t]))
            seconds += time.process_time() - began
            decisions += 1
            state, rewards, over = game.transition(state, {"player_0": action}, rng)
            total += rewards["player_0"]
            if over:
                break
        returns.append(total)
        alive += bool(state.snakes[0])
    return Result(np.array(returns), alive / episodes, 1000 * seconds / decisions)


def interval(values: np.ndarray) -> str:
    """Return the mean and half the width of its 95% interval."""
    return f"{values.mean():+.3f} ± {half_interval(values):.3f}"


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
        reference: Result | None = None
        for player, choose in players(game).items():
            result = play(scenario, game, choose, options.episodes)
            reference = reference or result
            difference = interval(result.returns - reference.returns)
            print(
                f"  {player:12} return {interval(result.returns)}   to the search {difference}"
                f"   alive {result.alive:.0%}   {result.milliseconds:.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
