"""The command ``textbench reproduce --config improvers`` behind its options."""

from collections.abc import Mapping

from research.improvers.jobs import ComparedFolder, ComparedJob, jobs_of
from research.improvers.settings import Comparison
from research.improvers.work import WORK
from research.jobs.command import Options, Undertaking, carry_out, check_installed
from research.jobs.report import publish

TOKENS_PER_SECOND = 40_000
"""That a method spends on one core, where the recipe improvers was first run."""

BASE_SECONDS, PLAY_SECONDS = 140.0, 5.0


def compare_improvers(study: Comparison, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; returns the exit code.

    Raises:
        UsageError: the folder belongs to something else, or a package is missing.
        JobFailedError: a job failed.
        KeyboardInterrupt: after Ctrl-C; the command that goes on has been printed.
    """
    folder, jobs = ComparedFolder(options.out.resolve()), jobs_of(study)
    if not options.report_only:
        check_installed("torch", "transformers", "tokenizers", "peft", "trl", "scipy")
    undertaking = Undertaking(
        study,
        folder,
        jobs,
        WORK,
        typical_seconds(jobs),
        called=lambda job: f"jobs {job.kind}",
        report=lambda: _report(study, folder, options),
        threads=1,
    )
    return carry_out(undertaking, options)


def typical_seconds(jobs: list[ComparedJob]) -> Mapping[str, float]:
    """``{job: seconds}`` to begin with; what the jobs of a folder took corrects them."""
    return {
        job.name: BASE_SECONDS if job.kind == "base" else PLAY_SECONDS + job.budget / TOKENS_PER_SECOND for job in jobs
    }


def _report(study: Comparison, folder: ComparedFolder, options: Options) -> int:
    from research.improvers.findings import read_findings
    from research.improvers.report import draw_curve, report_data, report_markdown

    return publish(read_findings(study, folder), folder.path, options, draw_curve, report_markdown, report_data)
