"""The models that the package ships, from a finished reproduction.

The rule, fixed before any run: seed 0 of the first arm (the method's own), the weights of its last iteration. Not the
best run and not the best iteration, so that a shipped model shows what to expect.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError
from benchmark.reproduce.command import facts_of
from benchmark.reproduce.jobs import Folder
from benchmark.reproduce.report import figure, success_of
from benchmark.reproduce.results import Played, read_reproduction
from benchmark.reproduce.settings import Experiment
from benchmark.statistics import mean_estimate

MODEL_FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
LARGEST = 5_000_000
"""Bytes that a shipped model may have."""


def ship(experiment: Experiment, folder: Folder, place: Path) -> list[Path]:
    """Write ``place/tiny-msgrpo-GAME`` for every game, with a card.

    Returns:
        The folders.

    Raises:
        UsageError: a run that is needed isn't done, or its model is too large.
    """
    arm = next(iter(experiment.arms))
    written = []
    for game in experiment.games:
        run = f"train/{game}/{arm}/0"
        for job in (run, f"play/{run}", "play/small"):
            if not folder.is_done(job):
                raise UsageError(f"{folder.path} has no result of {job} yet; finish it: textbench reproduce")
        source = folder.model(run).resolve()
        target = place / f"tiny-msgrpo-{game}"
        draft = place / f".writing-tiny-msgrpo-{game}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for name in MODEL_FILES:
            if (source / name).exists():
                shutil.copyfile(source / name, draft / name)
        size = sum(file.stat().st_size for file in draft.iterdir())
        if size > LARGEST:
            shutil.rmtree(draft)
            raise UsageError(f"the model of {run} has {size:,} bytes; shipped models have at most {LARGEST:,}")
        result = folder.result(run)
        record = {"settings": result["settings"], "evaluations": result["evaluations"], "history": result["history"]}
        (draft / "training.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
        (draft / "README.md").write_text(card(experiment, folder, game, arm, size), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        written.append(target)
    return written


def card(experiment: Experiment, folder: Folder, game: str, arm: str, size: int) -> str:
    """The model card, Markdown: data, settings, seed, commit, results, limits."""
    results = read_reproduction(experiment, folder)
    run = next(run for run in results.runs_of(game, arm) if run.seed == 0)
    base = experiment.bases["small"].source or "the small base of textbench reproduce"
    settings = folder.result(f"train/{game}/{arm}/0")["settings"]
    shown = "\n".join(f"- {name}: {value}" for name, value in settings.items() if name not in ("out", "threads"))
    controls = [
        c for c in results.controls if c["scenario"] == game and c["agent"] in ("small", f"train/{game}/{arm}/0")
    ]
    facts = "\n".join(f"- {name}: {value}" for name, value in facts_of().items())
    return f"""---
license: mit
library_name: transformers
pipeline_tag: text-generation
---

# tiny-msgrpo-{game}

A language model of {results.parameters["small"]:,} parameters ({size / 1e6:.1f} MB), post-trained with MS-GRPO on
`{game}`. Play it: `textbench run --agent tiny-msgrpo-{game}`.

## Data

The weights it began with: {base}, which imitates a noisy demonstrator. Then only its own episodes, on layouts of the
training seeds 0 to 9,999: {experiment.iterations} iterations of MS-GRPO with {arm} episode sampling.

## Which run

Seed 0, the weights of the last iteration. That rule was fixed before any run; it is neither the best seed nor the best
iteration. `training.json` has all settings, every evaluation and every iteration's metrics.

{shown}

{facts}

## Results

{experiment.final_episodes} fresh episodes per scenario, temperature {experiment.temperature:g}; mean return, success
rate behind the slash, 95% intervals over episodes of this one run.

{_results_table(results.agents["small"], run.final, experiment.scenarios)}

{_controls_text(controls)}
## Limits

- It knows only the wording of the package's default `think` prompts, and only the scenarios that its base knows; see
  the base's card.
- It was trained on one game; what the other game's figures above say is all that is known about it there.
- The figures are of one training run; `textbench reproduce` gives the spread over seeds.
"""


def _results_table(before: Mapping[str, Played], after: Mapping[str, Played], scenarios: Sequence[str]) -> str:
    both = [name for name in scenarios if name in before and name in after]
    rows = [f"| {name} | {_cell(before[name])} | {_cell(after[name])} |" for name in both]
    return "\n".join(["| scenario | base | this model |", "|---|---|---|", *rows])


def _cell(played: Played) -> str:
    return f"{figure(mean_estimate(played.returns))} / {figure(success_of(played.successes))}"


def _controls_text(controls: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for control in controls:
        who = "base" if control["agent"] == "small" else "this model"
        lines.append(
            f"- {who} on {control['scenario']}: return {control['returned']:.3f}, with another episode's observations "
            f"{control['returned_shuffled']:.3f}; the same action when asked again {control['agreement_again']:.1%}, "
            f"with another episode's observation {control['agreement_shuffled']:.1%}; {control['truth']:.1%} of the "
            "statements in its reasoning are true."
        )
    return "Does it use what it reads, and is its reasoning true?\n\n" + "\n".join(lines) + "\n" if lines else ""
