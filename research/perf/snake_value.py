"""Fits the guess of what a board of Snake is worth (``textgames/snake/value.py``), and measures what it is good for.

The greedy player plays training seeds, 20 rounds each; what it gets from every board on is regressed on the features of
that board, by least squares. Then players play other training seeds, and the standard deviation of their luck-free
returns is told as a share of the plain one: of the returns themselves, and beyond what the start promised, which
is what counts when two players are compared on the same seeds.

    python research/perf/snake_value.py                    fit, and print the coefficients
    python research/perf/snake_value.py --measure 500      take those of the source code, and play 500 episodes a player
"""

import argparse

import numpy as np
from snake_search import ME, Move, episode, players

from benchmark.score import cross_fitted
from textgames import SCENARIOS, TRAINING_SEEDS
from textgames.snake import (
    HORIZON,
    Snake,
    SnakeValue,
    distance_table,
    features,
    tour_times,
)

FITTED = {5: "snake-long", 3: "snake-poison"}  # pieces of good food, and a scenario that has so many
HELD_OUT = 5_000  # the first training seed that nothing is fitted on


def fit(game: Snake, episodes: int) -> np.ndarray:
    """Return the coefficients, in the order of ``features``."""
    greedy = players(game)["greedy"]
    moves: list[Move] = []
    gains: list[float] = []
    for seed in TRAINING_SEEDS[:episodes]:
        played = list(episode(game, greedy, HORIZON, seed))
        moves += played
        gains += np.cumsum([move.paid for move in reversed(played)])[::-1].tolist()
    worth = (game.apple_reward, game.banana_reward, game.fire_reward)
    heads = [move.state.snakes[0][0] for move in moves]
    food = [  # the cells of what is worth having
        [cell for cells, reward in zip(move.state[1:], worth, strict=True) if reward > 0 for cell in cells]
        for move in moves
    ]
    times = tour_times(np.array(heads), np.array(food), distance_table(game.width, game.height))
    left = np.array([move.left for move in moves])
    return np.linalg.lstsq(features(times, left), np.array(gains), rcond=None)[0]


def measure(name: str, player: str, episodes: int) -> str:
    """Return a row of the table: one player in one scenario."""
    scenario = SCENARIOS[name]
    game = scenario.game()
    value, choose = SnakeValue(game), players(game)[player]
    returns, luck, start = np.zeros(episodes), np.zeros(episodes), np.zeros(episodes)
    for number, seed in enumerate(TRAINING_SEEDS[HELD_OUT : HELD_OUT + episodes]):
        for move in episode(game, choose, scenario.horizon, seed):
            if move.left == scenario.horizon:
                start[number] = value.value(move.state, move.left, ME)
            expected = value.moments(move.state, move.action, move.left, ME).mean
            returns[number] += move.paid
            luck[number] += move.paid + (0.0 if move.over else value.value(move.after, move.left - 1, ME)) - expected
    beta = cross_fitted(returns - start, luck)
    free = returns - beta * luck
    ratio, beyond = free.std() / returns.std(), (free - start).std() / (returns - start).std()
    return f"| {name} | {player} | {beta.mean():.2f} | {ratio:.2f} | {beyond:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2_000, help="to fit on")
    parser.add_argument("--measure", type=int, default=0, metavar="EPISODES", help="to play for every player")
    options = parser.parse_args()
    if not options.measure:
        for pieces, name in FITTED.items():
            print(pieces, np.round(fit(SCENARIOS[name].game(), options.episodes), 3).tolist())
        return
    print("| scenario | player | beta | SD ratio | beyond the start |\n|:--|:--|--:|--:|--:|")
    for name in ("snake", "snake-poison"):
        for player in ("greedy", "planner", "random"):
            print(measure(name, player, options.measure), flush=True)


if __name__ == "__main__":
    main()
