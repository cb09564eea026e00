"""The command ``textbench reproduce --config smollm2`` behind its options: claim, estimate, work, report, ship.

What ships is chosen by the rule of all models that ship: seed 0 with the weights of its last iteration, so that a
shipped model shows what to expect.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmark import UsageError
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.reproduction.pretrained.jobs import PretrainedFolder, chosen, jobs_of, model_needs, typical_seconds
from research.reproduction.pretrained.settings import ARMS, STARTS, Pretrained
from research.reproduction.pretrained.work import WORK


def reproduce_pretrained(experiment: Pretrained, options: Options) -> int:
    """Do what the folder lacks of some parts, then write and print the report, or ship what it has."""
    folder, jobs = PretrainedFolder(options.out), jobs_of(experiment)
    if options.ship is not None:
        folder.claim(experiment)
        for place in ship(experiment, folder, options.ship, options.source):
            print(place)
        return 0
    wanted = chosen(jobs, options.parts or tuple(experiment.parts), experiment)
    trl = any(job.kind == "train" and experiment.arms[job.about].trainer == "trl" for job in wanted)
    undertaking = Undertaking(
        experiment,
        folder,
        wanted,
        WORK,
        typical_seconds(experiment, wanted),
        lambda: _report(experiment, folder, options, [job.name for job in wanted]),
        ("torch", "transformers", "tokenizers", "peft", "scipy", *(("trl", "datasets") if trl else ())),
        called=lambda job: f"{_KINDS[job.kind]} of part {job.part}",
    )
    return carry_out(undertaking, options)


_KINDS = {"start": "warm starts", "train": "training runs", "play": "players of fresh episodes"}


def _report(experiment: Pretrained, folder: PretrainedFolder, options: Options, wanted: Sequence[str]) -> int:
    from research.reproduction.pretrained.findings import read_findings
    from research.reproduction.pretrained.report import draw_plots, report_data, report_markdown

    findings = read_findings(experiment, folder)
    markdown = partial(report_markdown, command=f"textbench reproduce --config {options.source}")
    publish(findings, folder.path, options, draw_plots, markdown, report_data, jobs=len(findings.jobs))
    return 1 if set(findings.missing) & set(wanted) else 0


def ship(experiment: Pretrained, folder: PretrainedFolder, place: Path, source: str) -> list[Path]:
    """Write an adapter into ``place`` for every entry of ``ships`` that is done; the cards call the recipe
    ``source``."""
    from research.reproduction.pretrained.shrinking import shrink

    written = []
    for name, shipped in experiment.ships.items():
        about = shipped.agent.removeprefix(STARTS).removeprefix(ARMS)
        (job,) = model_needs(experiment, about, 0)
        if not folder.is_done(job):
            continue
        start = experiment.starts.get(about)
        scenarios = start.scenarios if start else experiment.scenarios_of(about)
        try:
            made = shrink(
                folder.model_of(job), place / name, rank=shipped.rank, base=experiment.model, scenarios=scenarios
            )
        except ValueError as error:
            raise UsageError(f"ships.{name}: {error}") from error
        card = _card(experiment.model, name, shipped.agent, scenarios, made.rank, made.error, source)
        (made.folder / "README.md").write_text(card, encoding="utf-8")
        written.append(made.folder)
    if not written:
        wanted = ", ".join(shipped.agent for shipped in experiment.ships.values()) or "nothing"
        raise UsageError(f"{folder.path} has nothing finished that ships ({wanted}; of trainings seed 0)")
    return written


def _card(model: str, name: str, agent: str, scenarios: Sequence[str], rank: int, error: float, source: str) -> str:
    warm = agent.startswith(STARTS)
    within = "which is what a training begins from" if warm else "in which the warm start and MS-GRPO are one"
    which = "It is" if warm else "It is the last iteration of seed 0 of"
    return (
        f"# {name}\n\n"
        f"What `{model}` learnt on {', '.join(scenarios)}: a LoRA adapter of rank {rank} in half precision, {within}. "
        f"By the norm of the weights' change, {error:.1%} of it is left out.\n\n"
        f"{which} `{agent}` of `textbench reproduce --config {source}`; "
        "docs/research/reproduction/pretrained.md has what it reaches. It plays by its name and is asked as "
        "`textbench.json` says.\n"
    )
