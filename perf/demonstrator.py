"""How well does the noisy demonstrator play that the tiny bases imitate? Mean returns on the fresh episodes.

Plays the layouts that ``textbench reproduce`` ends on, with the shares of styles of its full recipe, and prints the
mean return with a 95% interval (normal, over episodes): what a base that imitates perfectly would have at temperature
1. At the temperature of evaluations, 0.5, a base follows its teacher's more frequent moves, so it can play better.

    python perf/demonstrator.py [--episodes 500] [--scenario snake ...] [--sensible 0.25] [--hasty 0.25]
"""

import argparse

import numpy as np

from agents.models.tiny_lm.demonstrator import Demonstrator, Style
from textgames import SCENARIOS
from textgames.scenarios import Scenario

FINAL_OFFSET = 1000  # of the full recipe


def returns(scenario: Scenario, style: Style, episodes: int) -> np.ndarray:
    """The demonstrator's returns, ``(episodes,)``."""
    game = scenario.game()
    demonstrator = Demonstrator(game, style)
    (player,) = game.players
    found = np.zeros(episodes)
    for k in range(episodes):
        rng = np.random.default_rng(scenario.first_seed + FINAL_OFFSET + k)
        state = game.initial_state(rng)
        for _ in range(scenario.horizon):
            action = demonstrator(state, game.observe(state, player), rng).action
            state, rewards, over = game.transition(state, {player: action}, rng)
            found[k] += rewards[player]
            if over or not game.is_playing(state, player):
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), metavar="NAME")
    parser.add_argument("--sensible", type=float, default=0.25)
    parser.add_argument("--hasty", type=float, default=0.25)
    given = parser.parse_args()
    style = Style(given.sensible, given.hasty)
    for name in given.scenario or ["frozen-lake", "frozen-lake-slippery", "snake", "snake-poison"]:
        found = returns(SCENARIOS[name], style, given.episodes)
        half = 1.96 * found.std(ddof=1) / np.sqrt(len(found))
        print(f"{name:22} {found.mean():6.3f} [{found.mean() - half:.3f}, {found.mean() + half:.3f}]")


if __name__ == "__main__":
    main()
