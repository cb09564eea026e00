"""A recipe over several seeds: its learning curve with intervals.

    python research/perf/seeds.py configs/tiny-frozen-lake.toml --seeds 5 --out runs/seeds
    python research/perf/seeds.py configs/tiny-self-play-tic-tac-toe.toml --seeds 3 --metric regret --out runs/x

Runs ``python -m agents.msgrpo`` once per seed into ``OUT/seed-K``, resumes interrupted runs, and prints, for
every evaluation, the mean over seeds with its 95% interval (Student's t: the seeds are the sample, not the episodes).
Run it again to print the table of what is there; ``--csv`` keeps its figures.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.common import student
from agents.msgrpo import MSGRPOConfig
from research.jobs.report import table


def train(config: str, out: Path, seed: int, overrides: list[str]) -> None:
    """Train one seed, from its last checkpoint if it has one."""
    folder = out / f"seed-{seed}"
    command = [sys.executable, "-m", "agents.msgrpo", "--quiet"]
    if (folder / "last").exists():
        command += ["--resume", str(folder)]
    else:
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped before its first checkpoint
        command += ["--config", config]
        for setting in (*overrides, f"seed={seed}", f'out="{folder}"'):
            command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def curves(folders: list[Path], metric: str) -> dict[str, dict[int, list[float]]]:
    """Return ``{scenario: {iteration: the metric of each run}}``."""
    found: dict[str, dict[int, list[float]]] = {}
    for folder in folders:
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            if "evaluation" in record:
                result = record["evaluation"]
                points = found.setdefault(result["scenario"], {})
                points.setdefault(record["iteration"], []).append(result[metric])
    return found


def curves_tables(found: dict[str, dict[int, list[float]]], metric: str) -> str:
    """Return the curves as Markdown tables."""
    lines = []
    for scenario, points in found.items():
        rows = [
            [str(iteration), f"{student(values):.3f}", str(len(values)), " ".join(f"{value:.3f}" for value in values)]
            for iteration, values in sorted(points.items())
        ]
        lines += [scenario, "", table(["iteration", f"{metric} [95% interval]", "seeds", "each"], rows), ""]
    return "\n".join(lines)


def main() -> None:
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
    print(curves_tables(found, options.metric))
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["scenario", "iteration", "seed", options.metric])
            for scenario, points in found.items():
                for iteration, values in sorted(points.items()):
                    rows.writerows([scenario, iteration, seed, f"{v:.6f}"] for seed, v in enumerate(values))


if __name__ == "__main__":
    main()
