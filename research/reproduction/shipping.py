"""The models that the package ships, from a finished reproduction: the small base, and one for every game.

A rule that was fixed before any run picks the model of a game: seed 0 of the first arm (the method's own) with the
weights of its last iteration, neither the best run nor the best iteration, so that it shows what to expect.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.common import mean_estimate, replacing_folder
from benchmark import UsageError
from research.jobs.report import table
from research.reproduction.jobs import ReproductionFolder
from research.reproduction.reproduction import Played, Reproduction, read_reproduction
from research.reproduction.settings import Experiment

WEIGHTS_FILES = ("config.json", "generation_config.json", "model.safetensors", "textbench.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
LARGEST = 5_000_000  # how many bytes a shipped model may have


def ship(experiment: Experiment, folder: ReproductionFolder, place: Path, notes: Sequence[str] = ()) -> list[Path]:
    """Write the base and, for every game whose run is done and was played, the model trained on it, each with its card.

    Their folders in ``place``, which are returned, have the names of ``experiment.ships``. The ``notes`` are sentences
    for the base's card. A UsageError if the base isn't done, or a model is too large.
    """
    if not (folder.is_done("pretrain/small") and folder.is_done("play/small")):
        raise UsageError(f"{folder.path} has no base model yet; finish it: textbench reproduce --out {folder.path}")
    arm = next(iter(experiment.arms))
    results = read_reproduction(experiment, folder)
    written = []
    if experiment.ships.base and not experiment.bases["small"].source:  # else it ships already
        base = folder.model("small")
        texts = {
            "README.md": base_card(experiment, folder, results, notes),
            "recipe.json": (base / "recipe.json").read_text("utf-8"),
        }
        written.append(_write(base, base, place / experiment.ships.base, texts))
    for game in experiment.games:
        run = f"train/{game}/{arm}/0"
        if not folder.is_done(f"play/{run}"):
            continue
        result = folder.result(run)
        record = {name: result[name] for name in ("settings", "evaluations", "history")}
        texts = {"README.md": card(experiment, results, result, game, arm), "training.json": json.dumps(record) + "\n"}
        written.append(
            _write(folder.model(run), folder.model("small"), place / experiment.ships.trained.format(game=game), texts)
        )
    return written


def _write(weights: Path, tokenizer: Path, target: Path, texts: Mapping[str, str]) -> Path:
    """Write a folder of a model's files and these texts.

    The tokenizer is the base's own file: training doesn't change it, and a trainer's copy may name a class that older
    versions of transformers don't know.
    """
    sources = [weights / name for name in WEIGHTS_FILES] + [tokenizer / name for name in TOKENIZER_FILES]
    sources = [source for source in sources if source.exists()]
    size = sum(source.stat().st_size for source in sources)
    if size > LARGEST:
        raise UsageError(f"the model in {weights} has {size:,} bytes; shipped models have at most {LARGEST:,}")
    with replacing_folder(target) as draft:
        for source in sources:
            shutil.copyfile(source, draft / source.name)
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
    return target


def base_card(
    experiment: Experiment, folder: ReproductionFolder, results: Reproduction, notes: Sequence[str] = ()
) -> str:
    """Return the base model's own card with the results of the reproduction in it."""
    players = [agent for agent in ("random", "small") if agent in results.agents]
    rows = [[name, *(_cell(results.agents[agent][name]) for agent in players)] for name in experiment.scenarios]
    head = ["scenario", *("this model" if agent == "small" else "random player" for agent in players)]
    about = (
        f"{experiment.final_episodes} fresh episodes per scenario, temperature {experiment.temperature:g}; mean "
        "return, success rate behind the slash, 95% intervals."
    )
    controls = _controls_text([control for control in results.controls if control["agent"] == "small"]).rstrip()
    text = "\n\n".join([about, table(head, rows), controls, *notes])
    return (folder.model("small") / "README.md").read_text("utf-8").replace("Not evaluated.", text)


def card(experiment: Experiment, results: Reproduction, result: Mapping[str, Any], game: str, arm: str) -> str:
    """Return the model card in Markdown; ``result`` is that of its training."""
    run = next(run for run in results.runs_of(game, arm) if run.seed == 0)
    base = experiment.bases["small"].source or experiment.ships.base
    begun = f"`{base}`, which imitates" if base else "a base that the same recipe makes, which imitates"
    title = experiment.ships.trained.format(game=game)
    before = results.agents["small"]
    rows = [[each, _cell(before[each]), _cell(run.final[each])] for each in experiment.scenarios]
    about = (
        f"{experiment.final_episodes} fresh episodes per scenario, temperature {experiment.temperature:g}; mean "
        "return, success rate behind the slash, 95% intervals over episodes of this one run."
    )
    name = f"train/{game}/{arm}/0"
    shown = "\n".join(f"- {key}: {value}" for key, value in result["settings"].items() if key not in ("out", "threads"))
    facts = "\n".join(f"- {key}: {value}" for key, value in result["facts"].items())
    controls = [c for c in results.controls if c["scenario"] == game and c["agent"] in ("small", name)]
    return f"""---
license: mit
library_name: transformers
pipeline_tag: text-generation
---

# {title}

A language model of {results.parameters["small"]:,} parameters, post-trained with MS-GRPO on `{game}`. Play it:
`textbench run --agent {title} --scenario {game}`.

## Data

The weights it began with: {begun} a noisy demonstrator.
Then only its own episodes, on layouts of the training seeds 0 to 9,999: {experiment.iterations} iterations of MS-GRPO
with {arm} episode sampling.

## Which run

Seed 0, the weights of the last iteration. That rule was fixed before any run; it is neither the best seed nor the best
iteration. What settings were tried before, and on what: docs/research/stability.md and
docs/research/credit/recipe.md. `training.json` has all of this run's, every evaluation and every iteration's metrics.

{shown}

{facts}

## Results

{about}

{table(["scenario", "base", "this model"], rows)}

{_controls_text(controls)}
## Limits

- It knows only the wording of the `think` prompts in `textbench.json`, and only what its base learnt to read:
  {", ".join(dict.fromkeys(experiment.recipe("small").games))}.
- It was trained on one game; what the figures of others above say is all that is known about it there.
- The figures are of one training run; the report of the reproduction gives the spread over seeds.
"""


def _cell(played: Played) -> str:
    return f"{mean_estimate(played.returns):z.3f} / {mean_estimate(played.successes, (0, 1)):z.3f}"


def _controls_text(controls: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for control in controls:
        who = "base" if control["agent"] == "small" else "post-trained"
        lines.append(
            f"- {who} on {control['scenario']}: return {control['returned']:.3f}, with another episode's observations "
            f"{control['returned_shuffled']:.3f}; the same action when asked again {control['agreement_again']:.1%}, "
            f"with another episode's observation {control['agreement_shuffled']:.1%}; {control['truth']:.1%} of the "
            "statements in its reasoning are true."
        )
    return "Does it use what it reads, and is its reasoning true?\n\n" + "\n".join(lines) + "\n" if lines else ""
