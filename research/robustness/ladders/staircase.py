"""How few episodes find a player's level, by simulation: the staircase beside playing every level equally often.

    python -m research.robustness.ladders.staircase [--runs 200] [--json docs/research/ladders/staircase.json]

Players are curves whose level is known: those of the model, some that it doesn't have, and the best player of Frozen
Lake of whose moves a share slips, by its exact chances in each of 400 lakes. Every run is fitted by what ``textbench
run --levels`` uses.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.play import BATCH
from benchmark.score import Fit, Found, Seen
from research.robustness.ladders.difficulty import Listed
from textgames import SCENARIOS
from textgames.solving import blind_play

LEVELS = range(1, 11)
BUDGETS = (30, 50, 100, 200)
LAKES = 400


class Player(NamedTuple):
    """A simulated player."""

    name: str
    level: float  # where its mean is a half
    play: Callable[[int, np.random.Generator], float]  # ``y`` of an episode at a level
    weights: dict[int, float]


def players() -> Iterator[Player]:
    """Yield all that are simulated."""
    even = dict.fromkeys(LEVELS, 1.0)

    def coin(name: str, level: float, chance: Callable[[int], float]) -> Player:
        return Player(name, level, lambda at, rng: float(rng.random() < chance(at)), even)

    for spread, word in ((0.4, "steep"), (1.0, "usual"), (2.5, "flat")):
        yield coin(f"{word}, in the middle", 5.4, _logistic(5.4, spread))
    yield coin("usual, at the easy end", 1.6, _logistic(1.6, 1.0))
    yield coin("usual, at the hard end", 9.4, _logistic(9.4, 1.0))
    yield coin("usual, below the ladder", -0.5, _logistic(-0.5, 1.0))
    yield coin("usual, above the ladder", 12.0, _logistic(12.0, 1.0))
    # where 0.85 of a logistic curve is a half
    yield coin("fails 15% of all episodes", 5.4 + np.log(0.7), lambda at: 0.85 * _logistic(5.4, 1.0)(at))
    yield coin("an edge: good up to 6, bad from 7", 6.5, lambda at: 0.95 if at <= 6 else 0.05)
    yield coin("levels out of order", 5.5, lambda at: _logistic(5.5, 1.0)(at + (1 if at % 2 else -1)))
    usual = _logistic(5.4, 1.0)
    yield Player("returns that vary twice as much", 5.4, lambda at, rng: usual(at) + rng.normal(), even)
    yield from slipping((0.05, 0.1, 0.2, 0.3))


def _logistic(level: float, spread: float) -> Callable[[int], float]:
    return lambda at: float(1 / (1 + np.exp((at - level) / spread)))


def slipping(shares: tuple[float, ...]) -> Iterator[Player]:
    """Yield the best player of the lake of whose moves a share slips; its value is its chance of a return of 1."""
    rungs = {}
    for scenario in SCENARIOS["frozen-lake"].levels:
        solved, play, rung = Listed(scenario.game(), scenario.horizon, LAKES), blind_play(scenario), scenario.rung
        assert play is not None
        assert rung is not None
        assert rung.tolerance is not None
        rungs[scenario.level_number] = (solved, solved.start_values(0.0), play.value, rung.tolerance)
    headrooms = {level: float(best.mean()) - blind for level, (_, best, blind, _) in rungs.items()}
    weights = {level: (each / max(headrooms.values())) ** 2 for level, each in headrooms.items()}
    tolerances = np.log([tolerance for *_, tolerance in rungs.values()])
    for share in shares:
        worth = {level: solved.start_values(share) for level, (solved, *_) in rungs.items()}

        def play_one(level: int, rng: np.random.Generator, worth: Any = worth) -> float:
            lake = int(rng.integers(LAKES))
            won = float(rng.random() < worth[level][lake])
            return float(1 - (rungs[level][1][lake] - won) / headrooms[level])

        at = float(np.interp(-np.log(share), -tolerances, list(rungs)))
        yield Player(f"Frozen Lake, {share:.0%} of the moves slip", at, play_one, weights)


def staircase(player: Player, episodes: int, rng: np.random.Generator) -> Found:
    """Play one episode at every level, then a few at the levels that tell most."""
    seen = {level: [player.play(level, rng)] for level in LEVELS}
    left = episodes - len(LEVELS)
    while left > 0:
        count = min(BATCH, left)
        level = _fit(player, seen).next_level(count, player.weights)
        seen[level] += [player.play(level, rng) for _ in range(count)]
        left -= count
    return _fit(player, seen).found()


def every_level(player: Player, episodes: int, rng: np.random.Generator) -> Found:
    """Play as many at every level."""
    count = episodes // len(LEVELS)
    return _fit(player, {level: [player.play(level, rng) for _ in range(count)] for level in LEVELS}).found()


def _fit(player: Player, seen: dict[int, list[float]]) -> Fit:
    told = {level: Seen(values, player.weights[level]) for level, values in seen.items()}
    return Fit(told, LEVELS[0], LEVELS[-1])


def figures(found: list[Found], level: float) -> dict[str, float]:
    """Return bias, root mean square error and the interval's coverage; levels beyond the ladder are taken as its
    end."""
    clipped = np.clip([one.level for one in found], LEVELS[0], LEVELS[-1])
    off = clipped - np.clip(level, LEVELS[0], LEVELS[-1])
    inside = [(one.low is None or one.low <= level) and (one.high is None or level <= one.high) for one in found]
    return {
        "bias": round(float(off.mean()), 3),
        "error": round(float(np.sqrt((off**2).mean())), 3),
        "coverage": round(float(np.mean(inside)), 3),
    }


def main() -> int:
    """Simulate all players, print a line each, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="simulated runs of every player")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    given = parser.parse_args()
    rows = []
    for number, player in enumerate(players()):
        row: dict[str, Any] = {"player": player.name, "level": round(player.level, 2), "episodes": {}}
        for episodes in BUDGETS:
            row["episodes"][str(episodes)] = told = {}
            for name, way in (("staircase", staircase), ("every_level", every_level)):
                rng = np.random.default_rng([number, episodes])
                told[name] = figures([way(player, episodes, rng) for _ in range(given.runs)], player.level)
            print(f"{player.name} ({player.level:.1f}), {episodes}: {told}", flush=True)
        rows.append(row)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(row) for row in rows)
        given.json.write_text(f'{{"runs": {given.runs}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
