"""The command ``textbench reproduce --config smollm2`` behind its options: claim a folder, estimate, work, report."""

from collections.abc import Sequence
from functools import partial

from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.pretrained.jobs import PretrainedFolder, chosen, jobs_of
from research.pretrained.pace import typical_seconds
from research.pretrained.settings import Pretrained
from research.pretrained.work import WORK


def reproduce_pretrained(experiment: Pretrained, options: Options, source: str, parts: Sequence[str]) -> int:
    """Do what the folder lacks of some parts, then write and print the report; returns the exit code.

    Args:
        experiment: the recipe.
        options: how to do it.
        source: the recipe's name or file, for the command that the report tells.
        parts: the names of those that are to be run; empty: all.

    Raises:
        UsageError: there is no such part; else as :func:`carry_out` does.
    """
    folder, jobs = PretrainedFolder(options.out), jobs_of(experiment)
    wanted = chosen(jobs, parts or tuple(experiment.parts), experiment)
    trl = any(job.kind == "train" and experiment.arms[job.about].trainer == "trl" for job in wanted)
    undertaking = Undertaking(
        experiment,
        folder,
        wanted,
        WORK,
        typical_seconds(experiment, wanted),
        lambda: _report(experiment, folder, options, source, [job.name for job in wanted]),
        ("torch", "transformers", "tokenizers", "peft", "scipy", *(("trl", "datasets") if trl else ())),
        called=lambda job: f"{_KINDS[job.kind]} of part {job.part}",
    )
    return carry_out(undertaking, options)


_KINDS = {"start": "warm starts", "train": "training runs", "play": "players of fresh episodes"}


def _report(
    experiment: Pretrained, folder: PretrainedFolder, options: Options, source: str, wanted: Sequence[str]
) -> int:
    from research.pretrained.findings import read_findings
    from research.pretrained.plots import draw_plots
    from research.pretrained.report import report_data, report_markdown

    findings = read_findings(experiment, folder)
    markdown = partial(report_markdown, command=f"textbench reproduce --config {source}")
    publish(findings, folder.path, options, draw_plots, markdown, report_data, jobs=len(findings.jobs))
    return 1 if set(findings.missing) & set(wanted) else 0
