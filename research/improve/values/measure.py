"""The truth of a learned step value, and a search's loss by it: ``python -m research.improve.values.measure FILE``.

Random play of 600 small lakes, whose exact values are known, is learnt from with three seeds, on both kinds of targets.
A search over eight random proposals plays 200 other lakes by each value, by the exact one, by votes, and by a network
that has learnt nothing.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents import EpisodeTask, PromptMap, load_agent, request_in, rollout, search_player_of
from agents.common import replacing, student
from benchmark.runs import find_scenarios
from benchmark.show import RecordedDecision
from research.improve.around.choosing import Rank, SearchPolicy
from research.improve.methods.predicting import compared
from research.improve.methods.weighing import RecordedEpisode
from research.improve.values import About, StepValue, learn
from textgames import TRAINING_SEEDS, rounds_of_play

SCENARIO, PLAYER = "frozen-lake-level-1", "player_0"
SEEDS, EPISODES, PLAYED = (0, 1, 2), 600, 200


def random_play(scenario: str, episodes: int, seed: int, after: int = 0) -> list[RecordedEpisode]:
    """Return episodes of random play of a game for one player, on training seeds after the first ``after``."""
    found, about, rng = [], find_scenarios([scenario])[scenario], np.random.default_rng(seed)
    game, prompts = about.game(), PromptMap()
    for layout in TRAINING_SEEDS[after : after + episodes]:
        decisions = []
        for one in rounds_of_play(game, game.initial_state(np.random.default_rng(layout)), about.horizon, rng):
            request = request_in(game, one.state, PLAYER, about.horizon - one.played)
            action, reward = one.joint_action[PLAYER], one.rewards[PLAYER]
            origin = {"scenario": scenario, "player": PLAYER, "action": action}
            decisions.append(RecordedDecision(origin, request, prompts, action, 0.0, one.state, reward))
        result = sum(one.reward for one in decisions)
        found.append(RecordedEpisode(scenario, layout, result, [one._replace(result=result) for one in decisions]))
    return found


def by(value: StepValue) -> Rank:
    """Return the rank of proposals by a value."""
    return lambda request, proposed: value.of(request, list(dict.fromkeys(proposed)))


def played(rank_by: str | Rank, episodes: int = PLAYED, first: int = 0) -> dict[str, float]:
    """Return the success of a search over random proposals, and the exact value that an episode of it loses."""
    policy, game = SearchPolicy(load_agent("random"), rank_by=rank_by), find_scenarios([SCENARIO])[SCENARIO].game()
    solver, done = search_player_of(game), []
    lost = 0.0
    for episode in rollout(policy, [EpisodeTask.of(SCENARIO, first + number) for number in range(episodes)]):
        done.append(episode.successes[PLAYER])
        for step in episode.steps:
            values = solver.values(request_in(game, step.state, PLAYER, step.steps_left))
            lost += max(values.values()) - values[step.action]
    return {"success": float(np.mean(done)), "lost": lost / episodes}


def measured() -> dict[str, Any]:
    """Return a row for each seed and way, and the means over seeds with Student's intervals."""
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        play = random_play(SCENARIO, EPISODES, seed)
        held_out = random_play(SCENARIO, 100, seed, after=len(TRAINING_SEEDS) - 100)
        torch.manual_seed(seed)
        useless = StepValue(About(scenarios=(SCENARIO,), targets="td", decisions=1))
        ranks: dict[str, str | Rank] = {"votes": "votes", "exact": "exact", "nothing learnt": by(useless)}
        truth: dict[str, float] = {}
        for targets in ("mc", "td"):
            about = {"scenarios": (SCENARIO,), "targets": targets}
            value = learn([one.decisions for one in play], about, seed=seed)
            ranks[targets] = by(value)
            truth[targets] = (compared(value, held_out) or (0.0, 0))[0]
        for name, rank in ranks.items():
            own = {"correlation": truth[name]} if name in truth else {}
            rows.append({"seed": seed, "rank_by": name, **own, **played(rank, first=PLAYED * seed)})
    means = []
    for name in dict.fromkeys(row["rank_by"] for row in rows):
        same = [row for row in rows if row["rank_by"] == name]
        figures = {
            key: student([row[key] for row in same])._asdict() for key in sorted(same[0].keys() - {"seed", "rank_by"})
        }
        means.append({"rank_by": name, **figures})
    return {"command": "python -m research.improve.values.measure", "rows": rows, "means": means}


if __name__ == "__main__":
    with replacing(Path(sys.argv[1])) as stream:
        stream.write(json.dumps(measured(), indent=1) + "\n")
