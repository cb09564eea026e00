"""The command ``textbench reproduce --config improvers`` behind its options."""

from collections.abc import Mapping

from research.improvers.jobs import ComparedFolder, ComparedJob, jobs_of
from research.improvers.settings import Comparison
from research.improvers.work import WORK
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish

TOKENS_PER_SECOND = 40_000
"""That a method spends on one core, where the recipe improvers was first run."""

BASE_SECONDS, PLAY_SECONDS = 140.0, 5.0


def compare_improvers(study: Comparison, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = ComparedFolder(options.out.resolve()), jobs_of(study)
    undertaking = Undertaking(
        study,
        folder,
        jobs,
        WORK,
        typical_seconds(jobs),
        lambda: _report(study, folder, options),
        ("torch", "transformers", "tokenizers", "peft", "trl", "scipy"),
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
