"""Measure what agreement alone teaches: EMPO beside msgrpo, from one model, on Frozen Lake.

    python -m research.methods.agreement docs/research/credit/agreement.csv

Both ways play as many episodes and log EMPO's payment and the entropy of the answers to a prompt; ``msgrpo`` gives the
payment no weight. Expected before the runs: EMPO's answers lose their entropy, since a group's agreement is all that it
pays, and success doesn't rise as msgrpo's does, since the model's most frequent answer isn't the right one. A pilot of
msgrpo at twice the learning rate lost the form of answers after 20 iterations.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents.common import student
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, load

COMMON = MSGRPOConfig(
    model="tiny", scenarios=("frozen-lake",), groups=4, group_size=8, temperature=1.0, max_response_tokens=40,
    reward="empo", iterations=30, minibatches=1, learning_rate=5e-4, schedule="linear", adam_beta2=0.98,
    max_grad_norm=0.2, entropy_coefficient=0.0, eval_every=30, eval_episodes=100, samples_every=0, stop_after=0,
    threads=1, device="cpu",
)  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {"msgrpo": {"reward_mode": "add", "reward_weight": 0.0}, "empo": {}}
LOGGED = ("answer_entropy", "reward", "most_frequent_action", "entropy")
AT_AN_END = 5
"""Iterations at the start and at the end whose mean a row has."""


def rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield a row for each run: what was logged in its first and last iterations, and success before and after."""
    for seed in seeds:
        for way, settings in WAYS.items():
            config = replace(COMMON, seed=seed, **settings)
            model, tokenizer = load(config)
            trainer = MSGRPOTrainer(model, tokenizer, config=config)
            history = trainer.train()
            row: dict[str, Any] = {"way": way, "seed": seed}
            for name in LOGGED:
                for moment, part in (("first", history[:AT_AN_END]), ("last", history[-AT_AN_END:])):
                    row[f"{name}_{moment}"] = round(float(np.mean([one[name] for one in part if name in one])), 4)
            for moment, (_, (result,)) in zip(("before", "after"), trainer.evaluations, strict=True):
                row[f"success_{moment}"] = round(result.success, 4)
            yield row


def main() -> None:
    """Write the rows and print each way's mean changes and its success, with 95% intervals over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    found = []
    for row in rows(options.seeds):
        found.append(row)
        with options.file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(row), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    for way in WAYS:
        own = [row for row in found if row["way"] == way]
        for name in LOGGED:
            change = student([row[f"{name}_last"] - row[f"{name}_first"] for row in own])
            print(f"{way:8} change of {name:22} {change:.3f}")
        print(f"{way:8} {'success':32} {student([row['success_after'] for row in own]):.3f}")
    pairs = [[row for row in found if row["seed"] == seed] for seed in options.seeds]
    for name in ("answer_entropy_last", "success_after"):
        print(f"{'apart':8} {name:32} {student([one[name] - other[name] for one, other in pairs]):.3f}")


if __name__ == "__main__":
    main()
