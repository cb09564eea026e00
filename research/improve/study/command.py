"""The command ``textbench reproduce --config improvers`` behind its options."""

from collections.abc import Mapping
from typing import NamedTuple

from research.improve.study.settings import ComparedFolder, ComparedJob, Comparison, jobs_of
from research.improve.study.work import WORK
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish


class Pace(NamedTuple):
    """What jobs take on one core, if the recipes were first run."""

    base: float  # seconds
    play: float  # seconds of an evaluation
    tokens: float  # that a method spends in a second


PACKAGES = ("torch", "transformers", "tokenizers", "peft", "trl", "scipy")
MADE, PRETRAINED = Pace(140.0, 5.0, 40_000.0), Pace(7.0, 60.0, 1_000.0)


def compare_improvers(study: Comparison, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = ComparedFolder(options.out.resolve()), jobs_of(study)

    def report() -> int:
        from research.improve.study.report import draw_curve, read_findings, report_data, report_markdown

        return publish(read_findings(study, folder), folder.path, options, draw_curve, report_markdown, report_data)

    seconds = typical_seconds(jobs, PRETRAINED if study.pretrained else MADE)
    return carry_out(Undertaking(study, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)


def typical_seconds(jobs: list[ComparedJob], pace: Pace) -> Mapping[str, float]:
    """Return ``{job: seconds}`` to begin with; what the jobs of a folder took corrects them."""
    return {job.name: pace.base if job.kind == "base" else pace.play + job.budget / pace.tokens for job in jobs}
