"""A recipe over several seeds: its learning curve with intervals.

    python perf/seeds.py configs/tiny-frozen-lake-think.toml --seeds 5 --out runs/seeds
    python perf/seeds.py configs/tiny-self-play-tic-tac-toe.toml --seeds 3 --metric regret --out runs/tic-tac-toe

Runs ``python -m agents.msgrpo`` once per seed into ``OUT/seed-K``, goes on where a run was interrupted, and prints, for
every evaluation, the mean over seeds with its 95% interval (Student's t: the seeds are the sample, not the episodes).
Run it again to print the table of what is there; ``--csv`` keeps its figures.
"""

import argparse
import csv
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats

from agents.msgrpo import MSGRPOConfig


def train(config: str, out: Path, seed: int, overrides: list[str]) -> None:
    """One run, from its last checkpoint if it has one."""
    folder = out / f"seed-{seed}"
    command = [sys.executable, "-m", "agents.msgrpo", "--quiet"]
    if (folder / "last").exists():
        command += ["--resume", str(folder)]
    else:
        command += ["--config", config]
        for setting in (*overrides, f"seed={seed}", f'out="{folder}"'):
            command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def curves(folders: list[Path], metric: str) -> dict[str, dict[int, list[float]]]:
    """``{scenario: {iteration: the metric of each run}}``."""
    found: dict[str, dict[int, list[float]]] = {}
    for folder in folders:
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            if "evaluation" in record:
                result = record["evaluation"]
                points = found.setdefault(result["scenario"], {})
                points.setdefault(record["iteration"], []).append(result[metric])
    return found


def table(found: dict[str, dict[int, list[float]]], metric: str) -> str:
    """The curves in Markdown."""
    lines = []
    for scenario, points in found.items():
        lines += [
            f"{scenario}",
            "",
            f"| iteration | {metric} | 95% interval | seeds | each |",
            "|---|---|---|---|---|",
        ]
        for iteration, values in sorted(points.items()):
            mean, interval = float(np.mean(values)), ""
            if len(values) > 1 and np.ptp(values) > 0:
                low, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=stats.sem(values))
                interval = f"{low:.3f} to {high:.3f}"
            each = " ".join(f"{value:.3f}" for value in values)
            lines.append(f"| {iteration} | {mean:.3f} | {interval} | {len(values)} | {each} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--metric", default="mean_return", help="a field of evaluations, such as regret or exploitability"
    )
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="override a setting")
    parser.add_argument("--csv", type=Path, help="also write every seed's figures to this file")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    folders = [options.out / f"seed-{seed}" for seed in range(options.seeds)]
    if not options.table:
        MSGRPOConfig.from_toml(options.config)  # so that a mistake is one message and not five
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda seed: train(options.config, options.out, seed, options.set), range(options.seeds)))
    found = curves([folder for folder in folders if (folder / "metrics.jsonl").exists()], options.metric)
    print(table(found, options.metric))
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["scenario", "iteration", "seed", options.metric])
            for scenario, points in found.items():
                for iteration, values in sorted(points.items()):
                    rows.writerows([scenario, iteration, seed, f"{v:.6f}"] for seed, v in enumerate(values))


if __name__ == "__main__":
    main()
