"""How well does the noisy demonstrator play that the tiny bases imitate? Mean returns on the fresh episodes.

Plays the episodes that ``textbench reproduce`` ends on, with the demonstrator of its full recipe, and prints the
mean return with a 95% interval (normal, over episodes): what a base that imitates perfectly would have at temperature
1. At the temperature of evaluations, 0.5, a base follows its teacher's more frequent moves, so it can play better.

    python research/perf/demonstrator.py [--episodes 500] [--scenario snake ...] [--sensible 0.25] [--hasty 0.25]
"""

import argparse

import numpy as np

from agents.common import half_interval
from agents.tiny import Demonstrator, StyleShares
from research.reproduction.settings import Experiment
from textgames import SCENARIOS, Scenario


def returns(scenario: Scenario, style: StyleShares, episodes: range) -> np.ndarray:
    """Return the demonstrator's returns, ``(episodes,)``."""
    game = scenario.game()
    demonstrator = Demonstrator(game, style)
    (player,) = game.players
    found = np.zeros(len(episodes))
    for k, episode in enumerate(episodes):
        rng = np.random.default_rng(scenario.seed(episode))
        state = game.initial_state(rng)
        for _ in range(scenario.horizon):
            action = demonstrator(state, game.observe(state, player), rng).action
            state, rewards, over = game.transition(state, {player: action}, rng)
            found[k] += rewards[player]
            if over or not game.is_playing(state, player):
                break
    return found


def main() -> None:
    full = Experiment.read("full")
    style = full.data["style"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=full.final_episodes)
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), metavar="NAME")
    parser.add_argument("--sensible", type=float, default=style["sensible"])
    parser.add_argument("--hasty", type=float, default=style["hasty"])
    given = parser.parse_args()
    episodes = range(full.final_offset, full.final_offset + given.episodes)
    for name in given.scenario or full.scenarios:
        found = returns(SCENARIOS[name], StyleShares(given.sensible, given.hasty), episodes)
        half = half_interval(found)
        print(f"{name:22} {found.mean():6.3f} [{found.mean() - half:.3f}, {found.mean() + half:.3f}]")


if __name__ == "__main__":
    main()
