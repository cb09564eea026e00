"""What is reading worth in each scenario? From blind play to the reference, by playing.

    python research/perf/headroom.py [SCENARIO ...] [--episodes 50] [--json docs/games/headroom.json]

Plays, on the scenarios' own seeds: ``mute``, which answers nothing; ``constant``, the best action that is always taken;
``random``, ``blind``, ``greedy`` and ``planner``. Prints every one's score (0 is the best blind play, an unreadable
response executes a random action); and of every scenario

* ``headroom``: the reference's return less the blind one's, in standard errors of the mean of 50 episodes (of the
  player whose returns vary more, planner or blind; a dash if neither varies at all);
* ``share``: how much of what the reference gets is got without reading: by success if the game knows it, else by the
  return above that of random play.

With ``--json``, rows that are there already are kept, so that a run that was stopped is resumed; ``--again`` measures
them anew.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents import EpisodeTask, Policy, Turn, load_agent, rollout
from benchmark.score import References
from research.jobs.report import compact
from textgames import SCENARIOS, Scenario
from textgames.solving import best_constant, blind_play, standard_error

PLAYERS = ("mute", "constant", "random", "blind", "greedy", "planner")
STANDARD_EPISODES = 50
"""The episodes of a default run, whose standard error is the unit of the headroom."""


class Says:
    """Answers the same whatever it is asked; with nothing to say, it is mute."""

    def __init__(self, name: str, action: str = "") -> None:
        self.name, self._response = name, f"<action>{action}</action>" if action else ""

    def act(self, requests: Sequence[Any]) -> list[Turn]:
        """Answer every request with the same response."""
        return [Turn(self._response) for _ in requests]


def play(policy: Policy, scenario: Scenario, episodes: int) -> tuple[np.ndarray, float]:
    """Return the returns of a scenario's first episodes, (episodes,), and the share of successes."""
    tasks = [EpisodeTask.of(scenario, scenario.seed(k), invalid_action="random") for k in range(episodes)]
    played = list(rollout(policy, tasks))
    returns = np.array([sum(episode.returns.values()) for episode in played])
    return returns, float(np.mean([any(episode.successes.values()) for episode in played]))


def measure(scenario: Scenario, episodes: int) -> dict[str, Any]:
    """Return the row of one scenario for one player."""
    constant = best_constant(scenario.game(), scenario.horizon)
    policies = {name: load_agent(name) for name in PLAYERS[2:]}
    policies |= {"mute": Says("mute"), "constant": Says("constant", constant)}
    played = {name: play(policies[name], scenario, episodes) for name in PLAYERS}
    scale = References().scale(scenario, [scenario.seed(k) for k in range(episodes)])
    told = blind_play(scenario)
    if told is None or scale.blind is None or scale.reference is None:
        raise ValueError(f"{scenario.name} has no scale")
    zero, one = float(scale.blind.values.mean()), float(scale.reference.values.mean())
    random = float(played["random"][0].mean())
    spread = max(float(played[name][0].std(ddof=1)) for name in ("planner", "blind"))
    best = played["planner"][1]
    by_success = bool(scenario.game().success_means) and best > 0
    share = played["blind"][1] / best if by_success else (zero - random) / (one - random)
    players = {}
    for name, (returns, success) in played.items():
        mean, error = float(returns.mean()), float(standard_error(returns))
        players[name] = {"mean_return": mean, "standard_error": error, "success": success}
        players[name] |= {"score": (mean - zero) / (one - zero), "score_error": error / (one - zero)}
    return {
        "blind": {"policy": told.text, "value": zero, "exact": scale.blind.exact},
        "reference": {"value": one, "kind": scale.reference.kind, "source": scale.reference.source},
        "headroom": (one - zero) / (spread / STANDARD_EPISODES**0.5) if spread > 0 else None,
        "share": max(0.0, share),
        "episodes": episodes,
        "constant": constant,
        "players": players,
    }


def line(name: str, row: Mapping[str, Any]) -> str:
    """Return a row of the table that is printed."""
    headroom = "-" if row["headroom"] is None else f"{row['headroom']:.1f}"
    scores = " ".join(f"{one['score']:8.2f}" for one in row["players"].values())
    about = f"{name:24}{row['reference']['kind']:>11}{headroom:>7}{row['share']:7.2f}  "
    return f"{about}{scores}  {row['blind']['policy']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all for one player, where none is named")
    parser.add_argument("--episodes", type=int, default=STANDARD_EPISODES)
    parser.add_argument("--json", type=Path, help="write the rows here as well")
    parser.add_argument("--again", action="store_true", help="measure rows anew that the file has")
    given = parser.parse_args()
    if unknown := [name for name in given.scenarios if name not in SCENARIOS]:
        parser.error(f"unknown scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    alone = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) == 1]
    rows = json.loads(given.json.read_text(encoding="utf-8")) if given.json and given.json.exists() else {}
    heads = " ".join(f"{name:>8}" for name in PLAYERS)
    print(f"{'scenario':24}{'1 is':>11}{'headr.':>7}{'share':>7}  {heads}  blind play")
    for name in given.scenarios or alone:
        if name not in rows or given.again:
            rows[name] = measure(SCENARIOS[name], given.episodes)
        print(line(name, rows[name]), flush=True)
        if given.json:
            ordered = {each: rows[each] for each in alone if each in rows}
            given.json.write_text(compact(ordered), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
