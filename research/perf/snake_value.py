"""Fits the guess of what a board of Snake is worth (``textgames/snake/value.py``), and measures what it is good for.

The greedy player plays training seeds, 20 rounds each; what it gets from every board on is regressed on the features of
that board, by least squares. Then players play other training seeds, and the standard deviation of their luck-free
returns is told as a share of the plain one: of the returns themselves, and beyond what the start promised, which
is what counts when two players are compared on the same seeds.

    python research/perf/snake_value.py                    fit, and print the coefficients
    python research/perf/snake_value.py --measure 500      take those of the source code, and play 500 episodes a player
"""

import argparse
from collections.abc import Callable

import numpy as np

from benchmark.score import cross_fitted
from textgames import SCENARIOS, TRAINING_SEEDS
from textgames.snake import (
    HORIZON,
    Snake,
    SnakeSearch,
    SnakeState,
    SnakeValue,
    distance_table,
    features,
    greedy_action,
    tour_times,
)

ME = "player_0"
FITTED = {5: "snake-long", 3: "snake-poison"}  # pieces of good food, and a scenario that has so many
HELD_OUT = 5_000  # the first training seed that nothing is fitted on

Choose = Callable[[SnakeState, int, np.random.Generator], str]


def players(game: Snake) -> dict[str, Choose]:
    """Return the scripted players whose episodes are looked at."""
    search = SnakeSearch(game)
    return {
        "greedy": lambda state, left, rng: greedy_action(state, ME, game),
        "planner": lambda state, left, rng: search.choose(state, ME, left, rng),
        "random": lambda state, left, rng: game.actions[int(rng.random() * 4)],
    }


def good_food(game: Snake, state: SnakeState) -> list[int]:
    """Return the cells of the food that is worth having."""
    config = game
    rewards = (config.apple_reward, config.banana_reward, config.fire_reward)
    return [cell for cells, reward in zip(state[1:], rewards, strict=True) if reward > 0 for cell in cells]


def fit(game: Snake, episodes: int) -> np.ndarray:
    """Return the coefficients, in the order of ``features``."""
    heads, food, left, gains = [], [], [], []
    for seed in TRAINING_SEEDS[:episodes]:
        rng = np.random.default_rng(seed)
        state, rewards, over = game.initial_state(rng), [], False
        while len(rewards) < HORIZON and not over:
            heads.append(state.snakes[0][0])
            food.append(good_food(game, state))
            left.append(HORIZON - len(rewards))
            state, paid, over = game.transition(state, {ME: greedy_action(state, ME, game)}, rng)
            rewards.append(paid[ME])
        gains += np.cumsum(rewards[::-1])[::-1].tolist()
    times = tour_times(np.array(heads), np.array(food), distance_table(game.width, game.height))
    return np.linalg.lstsq(features(times, np.array(left)), np.array(gains), rcond=None)[0]


def measure(name: str, player: str, episodes: int) -> str:
    """Return a row of the table: one player in one scenario."""
    scenario = SCENARIOS[name]
    game = scenario.game()
    value, choose = SnakeValue(game), players(game)[player]
    returns, luck, start = np.zeros(episodes), np.zeros(episodes), np.zeros(episodes)
    for number, seed in enumerate(TRAINING_SEEDS[HELD_OUT : HELD_OUT + episodes]):
        rng = np.random.default_rng(seed)
        state, over = game.initial_state(rng), False
        start[number] = value.value(state, scenario.horizon, ME)
        for left in range(scenario.horizon, 0, -1):
            action = choose(state, left, np.random.default_rng([seed, left]))
            expected = value.moments(state, action, left, ME).mean
            state, paid, over = game.transition(state, {ME: action}, rng)
            returns[number] += paid[ME]
            luck[number] += paid[ME] + (0.0 if over else value.value(state, left - 1, ME)) - expected
            if over:
                break
    beta = cross_fitted(returns - start, luck)
    free = returns - beta * luck
    ratio, beyond = free.std() / returns.std(), (free - start).std() / (returns - start).std()
    return f"| {name} | {player} | {beta.mean():.2f} | {ratio:.2f} | {beyond:.2f} |"


def main() -> None:
    """Fit the coefficients, or measure how much variance the guess takes out."""
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
