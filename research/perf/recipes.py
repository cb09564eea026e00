"""Run the trainings that ship as they are written, and hold what comes out against what is stated in recipes.toml.

    python research/perf/recipes.py [NAME ...] --out runs/recipes [--json research/perf/data/recipes.json]

Every recipe is run by its own commands in ``OUT/NAME``, and its base and trained model are measured on episodes or
positions that neither training nor its evaluations play. If a folder has the models already, they are only measured.
Prints a table in Markdown, in which the documents have it, and ends with status 1 if an outcome isn't what is stated.
``--json`` puts the outcomes into a file beside those of other recipes.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from agents import EpisodeTask, load_agent, rollout
from agents.analysis import DirectAnswers, exact_regret, random_positions
from agents.analysis import measure as measure_exploitability
from agents.common import half_interval, read_toml
from research.jobs.intervals import share_of
from research.jobs.report import table
from textgames import SCENARIOS, find_yardstick, layout_generator
from textgames.solving import blind_play

RECIPES: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_suffix(".toml"), "the promises")
FRESH_OFFSET, EPISODES, POSITIONS = 1000, 300, 100


class Measured(NamedTuple):
    """One model's result with its 95% interval, both ends the value itself if it is exact; ``each`` by seed."""

    value: float
    low: float
    high: float
    each: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (f" [{self.low:.3f}, {self.high:.3f}]" if self.low < self.high else "")


class Outcome(NamedTuple):
    """Result of a recipe beside that of its base."""

    base: Measured
    trained: Measured
    gain: float  # the lower end of the interval of how much better the trained model is
    blind: float | None  # what the best blind player reaches, if that is known
    best: float | None  # and best play
    seconds: float  # of the commands, of the wall's clock; NaN if they had been run before

    def to_json(self) -> dict[str, Any]:
        """Return the figures that documents have."""
        ends = {"base": self.base, "trained": self.trained}
        figures = {name: {key: getattr(one, key) for key in ("value", "low", "high")} for name, one in ends.items()}
        return {**figures, "gain": self.gain, "blind": self.blind}


def outcome(name: str, folder: Path) -> Outcome:
    """Run a recipe in a folder, if its models aren't there yet, and measure both."""
    recipe = RECIPES[name]
    started, ran = perf_counter(), False
    if not any((folder / recipe["trained"] / file).exists() for file in ("config.json", "adapter_config.json")):
        run(recipe["commands"], folder)
        ran = True
    seconds = perf_counter() - started if ran else float("nan")
    specs = (f"hf:{folder / each}" if "/" in each else each for each in (recipe["base"], recipe["trained"]))
    base, trained = (measured(recipe, spec) for spec in specs)
    scenario = SCENARIOS[recipe["scenario"]]
    blind = blind_play(scenario) if recipe["measure"] == "success" else None
    best = _best(recipe) if recipe["measure"] == "success" else 0.0
    return Outcome(base, trained, gain_of(recipe["measure"], base, trained), blind and blind.value, best, seconds)


def run(commands: list[str], folder: Path) -> None:
    """Run commands as a person would who has activated this environment."""
    folder.mkdir(parents=True, exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        done = subprocess.run(
            shlex.split(command), cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{command}\n{done.stderr}")


def measured(recipe: dict[str, Any], model: str) -> Measured:
    """Return what one model reaches by its recipe's measure."""
    name = recipe["scenario"]
    scenario = SCENARIOS[name]
    seeds = range(scenario.seed(FRESH_OFFSET), scenario.seed(FRESH_OFFSET) + EPISODES)
    if recipe["measure"] == "success":
        tasks = [EpisodeTask.of(name, seed, invalid_action="random") for seed in seeds]
        played = sorted(rollout(load_agent(model), tasks, max_concurrency=128), key=lambda one: one.seed)
        return of_shares([float(next(iter(one.successes.values()))) for one in played])
    policy: Any = load_agent(model, temperature=1.0)  # the policy that is trained
    if recipe["measure"] == "regret":
        found = exact_regret(
            DirectAnswers(policy), random_positions([EpisodeTask.of(name, seed) for seed in seeds[:POSITIONS]])
        )
        return Measured(found.mean, found.low, found.high)
    exact = measure_exploitability(DirectAnswers(policy), scenario.game(), horizon=scenario.horizon)
    return Measured(exact.value, exact.low, exact.high)


def of_shares(each: list[float]) -> Measured:
    """Return a success rate with Wilson's interval."""
    return Measured(*share_of(each), tuple(each))


def gain_of(measure: str, base: Measured, trained: Measured) -> float:
    """Return the lower end of the gain's 95% interval: successes seed by seed, regrets by their nearer ends."""
    if measure != "success":
        return base.low - trained.high
    gains = np.subtract(trained.each, base.each)
    return float(gains.mean()) - half_interval(gains)


def _best(recipe: dict[str, Any]) -> float | None:
    """Return the value of best play from the fresh starts, if it is known exactly."""
    scenario = SCENARIOS[recipe["scenario"]]
    game, unused = scenario.game(), np.random.default_rng(0)
    yardstick = find_yardstick(game)
    if yardstick is None or not yardstick.exact:
        return None
    starts = [layout_generator(scenario.seed(FRESH_OFFSET + k), unused) for k in range(EPISODES)]
    player = game.players[0]
    return float(np.mean([yardstick.value(game.initial_state(rng), scenario.horizon, player) for rng in starts]))


def outcome_table(outcomes: dict[str, Outcome]) -> str:
    """Return the outcomes of the recipes as a Markdown table."""
    head = ("recipe", "measure", "base", "trained", "blind play", "best play", "gain at least", "stated", "seconds")
    rows = []
    for name, one in outcomes.items():
        recipe = RECIPES[name]
        blind, best = ("" if value is None else f"{value:.2f}" for value in (one.blind, one.best))
        seconds = "" if np.isnan(one.seconds) else f"{one.seconds:.0f}"
        what, gain = f"{recipe['measure']}, {recipe['scenario']}", [f"{one.gain:.3f}", str(recipe["gain"])]
        rows.append([name, what, str(one.base), str(one.trained), blind, best, *gain, seconds])
    return table(head, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*RECIPES, []], metavar="NAME", help=", ".join(RECIPES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    outcomes = {name: outcome(name, (options.out / name).resolve()) for name in options.names or RECIPES}
    print(outcome_table(outcomes))
    if options.json:
        known = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
        known |= {name: one.to_json() for name, one in outcomes.items()}
        options.json.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    missed = [name for name, one in outcomes.items() if one.gain <= RECIPES[name]["gain"]]
    for name in missed:
        print(f"{name} gained {outcomes[name].gain:.3f}, stated is more than {RECIPES[name]['gain']}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
