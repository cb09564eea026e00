"""What an iteration costs with each registered method, beside the plain one in the same run.

    python research/perf/credit_cost.py                        # every method of every plug-in point, some minutes
    python research/perf/credit_cost.py --point surrogate --rounds 12
    python research/perf/credit_cost.py --only credit.vine credit.gigpo --json cost.json

The embedded model ``tiny`` plays Frozen Lake at a learning rate of nothing, so all methods play the same episodes, and
what differs is the method's own work: more rollouts, another pass of the model, a critic, arithmetic. A method takes
the plain one's place at its own plug-in point; the other points stay plain. Every round runs each method once, in
another order, and the plain one several times in between; a ratio is that of a method's CPU seconds to the mean of the
plain ones of its round, so that other load on the machine changes it little. The intervals are 95%, over rounds.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from agents.common import student
from agents.msgrpo import POINTS, ConfigError, MSGRPOConfig, MSGRPOTrainer, load

PLAIN = MSGRPOConfig(
    model="tiny", scenarios=("frozen-lake",), groups=4, group_size=8, max_response_tokens=48, iterations=10_000,
    learning_rate=1e-12, weight_decay=0.0, abort_grad_norm=0.0, eval_every=0, samples_every=0,
)  # fmt: skip
PLAIN_PER_ROUND = 4


def trainer_of(config: MSGRPOConfig) -> MSGRPOTrainer:
    """Return a trainer that has done its first iteration."""
    trainer = MSGRPOTrainer(*load(config), config=config, quiet=True)
    trainer.iterate()
    return trainer


def chosen(point: str | None, only: Sequence[str] | None) -> list[str]:
    """Return ``point.method`` of all methods that are asked for, without those that the plain run has."""
    names = [f"{p}.{name}" for p, registry in POINTS.items() for name in registry.names]
    plain = {f"{p}.{getattr(PLAIN, registry.setting)}" for p, registry in POINTS.items()}
    if only:
        if unknown := set(only) - set(names):
            raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; accepted: {', '.join(names)}")
        return list(only)
    return [name for name in names if name not in plain and point in (None, name.split(".")[0])]


def measure(names: Sequence[str], rounds: int) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Figures of each method, and the reasons why some can't be measured here."""
    plain, made, refused = trainer_of(PLAIN), {}, {}
    for full in names:
        point, name = full.split(".", 1)
        try:
            made[full] = trainer_of(replace(PLAIN, **{POINTS[point].setting: name}))
        except ConfigError as error:
            refused[full] = str(error)
    ratios: dict[str, list[float]] = {full: [] for full in made}
    tokens: dict[str, float] = {}
    seconds: list[float] = []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        order = [*made, *["plain"] * PLAIN_PER_ROUND]
        random.Random(number).shuffle(order)
        spent: dict[str, list[float]] = {}
        for full in order:
            trainer = plain if full == "plain" else made[full]
            trainer.iteration = 1  # the same episodes every time
            started = time.process_time()
            tokens[full] = trainer.iterate()["update_tokens"]
            spent.setdefault(full, []).append(time.process_time() - started)
        seconds += spent["plain"]
        for full in made:
            ratios[full].append(spent[full][0] / float(np.mean(spent["plain"])))
    found = {"plain": {"ratio": 1.0, "half_width": 0.0, "seconds": float(np.mean(seconds)), "tokens": tokens["plain"]}}
    for full, each in ratios.items():
        mean, _, high = student(each)
        half = float("nan") if high is None else high - mean
        own = {"ratio": mean, "half_width": half, "seconds": mean * float(np.mean(seconds)), "tokens": tokens[full]}
        found[full] = own
    return found, refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--point", choices=tuple(POINTS))
    parser.add_argument("--only", nargs="+", metavar="POINT.METHOD")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write the figures")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found, refused = measure(chosen(options.point, options.only), options.rounds)
    print(f"{'method':28} {'CPU s':>7} {'ratio to plain':>18} {'update tokens':>14}")
    for name, row in found.items():
        ratio = "1" if name == "plain" else f"{row['ratio']:.3f} +- {row['half_width']:.3f}"
        print(f"{name:28} {row['seconds']:7.2f} {ratio:>18} {row['tokens']:14,.0f}")
    for name, why in refused.items():
        print(f"{name:28} not measured: {why.splitlines()[0]}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rounds": options.rounds, "methods": found, "refused": refused}, file, indent=1)


if __name__ == "__main__":
    main()
