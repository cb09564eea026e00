"""Learning curves of one recipe through several engines, beside the live model's.

    python research/perf/engine_curves.py runs/engines --svg docs/engines/curves.svg --json docs/engines/curves.json

``runs/engines`` has a folder for each arm (``live``, ``server-0``, ...) with the runs of ``seeds.py`` in it. For every
arm: the mean return of the last ten iterations' rollouts, and the exact expected return of the last weights on the
first hundred evaluation starts at temperature 0.5 (by dynamic programming over the model's own probabilities). Arms are
compared with the first one seed by seed; intervals are Student's, over seeds.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from agents import LanguageAgentPolicy
from agents.common import student
from agents.models import Decoding, TransformersModel, read_card
from agents.msgrpo import MSGRPOConfig, prompts_of
from research.credit.instrument.exact.truth import Truth
from research.jobs.pictures import COLOURS, figure_of, save, style
from research.jobs.report import compact, table
from textgames import SCENARIOS, layout_generator

STARTS, TEMPERATURE, LAST, WINDOW = 100, 0.5, 10, 5
LABELS = {
    "live": "live model",
    "live-1": "copy in this process, staleness 1",
    "server-0": "vLLM server, staleness 0",
    "server-1": "vLLM server, staleness 1",
}


def exact_return(checkpoint: Path) -> float:
    """Return the expected return of a checkpoint's weights, computed."""
    config = MSGRPOConfig.from_toml(checkpoint / "msgrpo.toml")
    scenario = SCENARIOS[config.scenarios[0]]
    model = TransformersModel.from_pretrained(checkpoint, device="cpu")
    policy = LanguageAgentPolicy(
        model, prompts_of(config, read_card(str(checkpoint))), Decoding(temperature=TEMPERATURE)
    )
    rules, unused = scenario.game(), np.random.default_rng(0)
    starts = [rules.initial_state(layout_generator(scenario.seed(k), unused)) for k in range(STARTS)]
    truth = Truth.of(policy, rules, starts, scenario.horizon, format_penalty=0.0, max_states=100_000)
    return float(truth.solution.returns.mean())


def run_of(folder: Path) -> dict[str, Any] | None:
    """Return what a finished run gave; ``None`` for one that isn't done. The exact return is computed once and kept."""
    if not (folder / "last" / "msgrpo.toml").exists():
        return None
    config = MSGRPOConfig.from_toml(folder / "last" / "msgrpo.toml")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    history = [line for line in lines if "evaluation" not in line]
    if len(history) < config.iterations:
        return None
    kept = folder / "exact.json"
    if not kept.exists():
        kept.write_text(json.dumps(exact_return(folder / "last")))
    return {
        "seed": config.seed,
        "returns": [line["return"] for line in history],
        "late": float(np.mean([line["return"] for line in history[-LAST:]])),
        "exact": json.loads(kept.read_text()),
        "lag": float(np.mean([line["lag"] for line in history])),
        "mismatch": float(np.mean([line["mismatch_mean"] for line in history if "mismatch_mean" in line])),
        "mismatch_max": float(np.max([line["mismatch_max"] for line in history if "mismatch_max" in line])),
        "importance": [line["importance_mean"] for line in history if "importance_mean" in line],
        "seconds": float(np.mean([line["seconds"] for line in history])),
    }


def arms_table(arms: dict[str, list[dict[str, Any]]]) -> str:
    """Return the arms beside each other, in Markdown."""
    first = next(iter(arms))
    head = (
        *("arm", "seeds", f"return, last {LAST} iterations", "exact return at the end"),
        *(f"less {first}'s, seed by seed", "updates behind", "mismatch (mean, max)", "weights"),
    )
    rows = []
    base = {run["seed"]: run for run in arms[first]}
    for name, runs in arms.items():
        pairs = [run["exact"] - base[run["seed"]]["exact"] for run in runs if run["seed"] in base]
        difference = "" if name == first or not pairs else f"{student(pairs):+.3f}"
        weights = [one for run in runs for one in run["importance"]]
        mismatch = f"{np.mean([run['mismatch'] for run in runs]):.1e}, {max(run['mismatch_max'] for run in runs):.1e}"
        rows.append([
            LABELS.get(name, name), str(len(runs)), f"{student([run['late'] for run in runs]):.3f}",
            f"{student([run['exact'] for run in runs]):.3f}", difference,
            f"{np.mean([run['lag'] for run in runs]):.2f}", mismatch, f"{np.mean(weights):.4f}" if weights else "none",
        ])  # fmt: skip
    return table(head, rows)


def plot(arms: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Mean return of the rollouts over iterations, smoothed, with the interval over seeds."""
    with style():
        figure, axes = figure_of(1, 1, 6, 3.6)
        axis = axes[0][0]
        for colour, (name, runs) in zip(COLOURS, arms.items(), strict=False):
            kernel = np.ones(WINDOW) / WINDOW
            curves = np.array([np.convolve(run["returns"], kernel, "valid") for run in runs])
            at, mean = np.arange(WINDOW, WINDOW + curves.shape[1]), curves.mean(0)
            axis.plot(at, mean, color=colour, label=f"{LABELS.get(name, name)} ({len(runs)} seeds)")
            if len(runs) > 1:
                _, low, high = zip(*map(student, curves.T), strict=True)
                axis.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.set_xlabel("iterations")
        axis.set_ylabel(f"mean return of the rollouts, {WINDOW} iterations")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
        path.parent.mkdir(parents=True, exist_ok=True)
        save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--json", type=Path, help="also write the figures of every run")
    options = parser.parse_args()
    known = [*LABELS, *sorted(path.name for path in options.folder.iterdir() if path.name not in LABELS)]
    arms = {
        name: runs
        for name in known
        if (runs := [run for at in sorted((options.folder / name).glob("seed-*")) if (run := run_of(at)) is not None])
    }
    if not arms:
        raise SystemExit(
            f"{options.folder} has no finished run; configs/tiny-frozen-lake-engines.toml has the commands"
        )
    print(arms_table(arms))
    if options.svg:
        plot(arms, options.svg)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(compact(arms))


if __name__ == "__main__":
    main()
