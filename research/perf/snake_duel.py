"""Snake for two, trained against itself, a league of its own past, and fixed players: three ways that begin alike.

    python research/perf/snake_duel.py base --out runs/snake-duel
    python research/perf/snake_duel.py train --out runs/snake-duel --seed 0
    python research/perf/snake_duel.py table --csv docs/research/self_play/snake-duel.csv --out runs/snake-duel

Plan, before any run: seeds 0, 1 and 2 of ``configs/tiny-league-snake-duel.toml``, in which the ways differ by
:data:`WAYS` alone. All learn from 64 parts an iteration. Each trained model, and the base, then plays 60 fresh starts
from both seats at temperature 1 against random and greedy, and 10 against planner. The measure is its mean return; the
question is the difference of league and self-play by seed, over all three opponents. Intervals are Student's, over
seeds. ``--snakes 4`` does the same with four snakes on 6x6 cells, from a base of fewer steps, in self-play alone: each
trained model has every seat in turn, with random or greedy in the three others (:data:`SETUPS`).
"""

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents import EpisodeTask, load_agent, request_in, rollout
from agents.common import student
from agents.models import load_model
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.tiny import Recipe, legal_play, pretrain, save
from research.jobs.report import table
from textgames import SCENARIOS, game_of

CONFIG = Path(__file__).parents[2] / "configs/tiny-league-snake-duel.toml"
WAYS: dict[str, dict[str, Any]] = {
    "self-play": {"opponents": {}},  # each game has a part of every seat
    "league": {},
    "fixed": {"opponents": ["random", "greedy"]},
}
SETUPS: dict[int, dict[str, Any]] = {  # by the number of snakes: the board, the base, and starts against each opponent
    2: {
        "game": {},
        "ways": tuple(WAYS),
        "base": {"examples": 30_000, "steps": 800},
        "opponents": {"random": 60, "greedy": 60, "planner": 10},
    },
    4: {
        "game": {"width": 6, "height": 6, "num_apples": 4, "num_players": 4},
        "ways": ("self-play",),
        "base": {"examples": 8_000, "steps": 100},
        "opponents": {"random": 20, "greedy": 20},
    },
}
FRESH_OFFSET = 1000  # as textbench reproduce has it
SEEDS = 3


def make_base(folder: Path, config: MSGRPOConfig, examples: int, steps: int) -> None:
    """Make a model that plays greedy's move in seven of ten decisions, and a random legal one in the others."""
    duel, greedy = SCENARIOS["snake-duel"], load_agent("greedy")
    small = duel._replace(kwargs={**duel.kwargs, **config.game}, horizon=config.max_steps)

    def move(game: Any, state: Any, player: str) -> str:
        (turn,) = greedy.act([request_in(game, state, player)])
        return str(game.interpret(turn.response, state, player))

    played = legal_play(small, examples, np.random.default_rng(0), favourites=0.7, favourite_of=move)
    recipe = Recipe.legal_play(
        ["snake-duel"], steps=steps, batch_size=64, hidden_size=64, intermediate_size=160, layers=3
    )
    save(pretrain(recipe, examples=played), folder)


def measured(model: str, config: MSGRPOConfig, opponents: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Return ``{opponent: (the model's mean return, the opponent's)}`` on fresh starts, from every seat."""
    duel, player = SCENARIOS["snake-duel"], load_agent(model, temperature=1.0, max_tokens=config.max_response_tokens)
    settings = {**config.game, "max_steps": config.max_steps}
    found, seats = {}, game_of(duel.env_id, **duel.settings(**config.game)).players
    for name, starts in opponents.items():
        tasks = [EpisodeTask.of(duel, duel.seed(FRESH_OFFSET + k), **settings) for k in range(starts)]
        other, pairs = load_agent(name), list[tuple[float, float]]()
        for own in seats:
            for episode in rollout({**dict.fromkeys(seats, other), own: player}, tasks):
                others = [returned for seat, returned in episode.returns.items() if seat != own]
                pairs.append((episode.returns[own], float(np.mean(others))))
        mine, theirs = np.mean(pairs, axis=0).tolist()
        found[name] = mine, theirs
    return found


def train(out: Path, seed: int, ways: Sequence[str], config: MSGRPOConfig, opponents: Mapping[str, int]) -> None:
    """Train in these ways with one seed, each from the base, and measure them; what is there isn't made again."""
    base = str(out / "base")
    if not (out / "base.json").exists():
        (out / "base.json").write_text(json.dumps(measured(f"hf:{base}", config, opponents)))
    for way in ways:
        folder = out / f"{way}-{seed}"
        if (folder / "fresh.json").exists():
            continue
        settings = {"model": base, "seed": seed, "out": str(folder)} | WAYS[way]
        if way == "self-play":
            settings["groups"] = config.groups // config.game.get("num_players", 2)
        changes = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
        trainer = MSGRPOTrainer(
            *load_model(base, dtype="float32", device="cpu"), "", config.with_overrides(changes), quiet=True
        )
        trainer.train()
        (folder / "fresh.json").write_text(json.dumps(measured(f"hf:{folder / 'last'}", config, opponents)))


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Return a row for each way, seed and opponent; the base has no seed."""
    files = {("base", ""): out / "base.json"}
    files |= {(way, str(seed)): out / f"{way}-{seed}" / "fresh.json" for way in WAYS for seed in range(SEEDS)}
    return [
        {"way": way, "seed": seed, "opponent": name, "return": f"{own:.4f}", "opponent_return": f"{his:.4f}"}
        for (way, seed), file in files.items()
        if file.exists()
        for name, (own, his) in json.loads(file.read_text()).items()
    ]


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the mean returns of all ways, and by how much the others are better than self-play, in Markdown."""

    def by_seed(way: str, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        own = [row for row in rows if row["way"] == way and name in (row["opponent"], "all")]
        seeds = sorted({row["seed"] for row in own})
        return np.array([np.mean([float(row["return"]) for row in own if row["seed"] == seed]) for seed in seeds])

    there = list(dict.fromkeys(row["way"] for row in rows))
    names = [*dict.fromkeys(row["opponent"] for row in rows), "all"]
    lines = [[way, *(f"{student(by_seed(way, name)):.2f}" for name in names)] for way in there]
    lines += [
        [
            f"{way} less self-play",
            *(f"{student(by_seed(way, name) - by_seed('self-play', name)):.2f}" for name in names),
        ]
        for way in there
        if way not in ("base", "self-play")
    ]
    return table(["return against", *names], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("base", "train", "table"))
    parser.add_argument("--out", type=Path, default=Path("runs/snake-duel"))
    parser.add_argument("--seed", type=int, default=0, help="of the training; the plan has 0, 1 and 2")
    parser.add_argument("--ways", nargs="*", choices=WAYS, help="all by default; of four snakes self-play")
    parser.add_argument("--snakes", type=int, choices=(2, 4), default=2)
    parser.add_argument("--csv", type=Path, help="the figures, which are written if there are runs, and else read")
    options = parser.parse_args()
    config = MSGRPOConfig.from_toml(CONFIG)
    setup = SETUPS[options.snakes]
    config = config.with_overrides([f"game={json.dumps({**config.game, **setup['game']})}"])
    if options.part == "base":
        make_base(options.out / "base", config, **setup["base"])
    elif options.part == "train":
        train(options.out, options.seed, options.ways or setup["ways"], config, setup["opponents"])
    else:
        rows = rows_of(options.out)
        if rows and options.csv:
            with options.csv.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        elif options.csv:
            rows = list(csv.DictReader(options.csv.open(encoding="utf-8")))
        print(tables(rows))


if __name__ == "__main__":
    main()
