"""Measure tree search against flat search at equal simulations, where regret is known exactly.

    python -m research.improve.study.trees  # three CPU minutes; writes research/improve/data/trees.json

Positions are those of random play from the first episodes of a scenario; a random player makes 32 proposals, which name
nearly every action. The mean regret per decision is over three seeds of the search; intervals are over the episodes.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents import EpisodeTask, action_named, load_agent
from agents.analysis import random_positions
from agents.common import replacing, student
from research.improve.around.choosing import SearchPolicy

FILE = Path(__file__).parents[1] / "data" / "trees.json"
EPISODES = {"nim": 30, "tic-tac-toe": 30, "frozen-lake-slippery": 10}
SIMULATIONS = (16, 64, 256, 1024)
SEEDS = range(3)


def measured(scenario: str, episodes: int) -> list[dict[str, Any]]:
    """Return a row for each way to rank and number of simulations: the regret of a decision, over whole episodes."""
    found = random_positions([EpisodeTask.of(scenario, 10_000 + seed) for seed in range(episodes)])
    positions = [one for one in found if min(one.values.values()) < max(one.values.values())]

    def regret(**options: Any) -> dict[str, float | None]:
        lost: dict[int, list[float]] = {}
        policy = SearchPolicy(load_agent("random"), proposals=32, **options)
        for seed in SEEDS:
            requests = [replace(one.request, seed=(seed, at)) for at, one in enumerate(positions)]
            for one, turn in zip(positions, policy.act(requests), strict=True):
                named = action_named(one.request, turn.response)
                assert named is not None  # random play is legal
                lost.setdefault(one.seed, []).append(max(one.values.values()) - one.values[named])
        return student([float(np.mean(own)) for own in lost.values()])._asdict()

    actions = float(np.mean([len(one.values) for one in positions]))
    rows: list[dict[str, Any]] = [{"rank_by": "votes", "simulations": 0, "regret": regret()}]
    for number in SIMULATIONS:
        flat = regret(rank_by="rollouts", rollouts=round(number / actions))  # of each action
        rows.append({"rank_by": "rollouts", "simulations": number, "regret": flat})
        rows.append({"rank_by": "tree", "simulations": number, "regret": regret(rank_by="tree", simulations=number)})
    return [{"scenario": scenario, "positions": len(positions), "episodes": episodes, **row} for row in rows]


if __name__ == "__main__":
    table = [row for scenario, episodes in EPISODES.items() for row in measured(scenario, episodes)]
    with replacing(FILE) as stream:
        stream.write("[\n" + ",\n".join(json.dumps(row) for row in table) + "\n]\n")
