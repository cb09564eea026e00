"""The command ``textbench reproduce --config smollm2`` behind its options: claim a folder, estimate, work, report."""

from collections.abc import Sequence
from functools import partial

from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.reproduction.pretrained.jobs import PretrainedFolder, chosen, jobs_of
from research.reproduction.pretrained.pace import typical_seconds
from research.reproduction.pretrained.settings import Pretrained
from research.reproduction.pretrained.shipping import ship
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
    from research.reproduction.pretrained.plots import draw_plots
    from research.reproduction.pretrained.report import report_data, report_markdown

    findings = read_findings(experiment, folder)
    markdown = partial(report_markdown, command=f"textbench reproduce --config {options.source}")
    publish(findings, folder.path, options, draw_plots, markdown, report_data, jobs=len(findings.jobs))
    return 1 if set(findings.missing) & set(wanted) else 0
