"""The command ``textbench reproduce --config improvers`` behind its options."""

from research.improve.study.settings import ComparedFolder, Comparison, jobs_of
from research.improve.study.work import WORK
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish

PACKAGES = ("torch", "transformers", "tokenizers", "peft", "trl", "scipy")


def compare_improvers(study: Comparison, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = ComparedFolder(options.out.resolve()), jobs_of(study)
    # seconds of a base and of an evaluation, and tokens a second, on one core if the recipes were first run
    base, play, tokens = (7.0, 60.0, 1_000.0) if study.pretrained else (140.0, 5.0, 40_000.0)
    seconds = {job.name: base if job.kind == "base" else play + job.budget / tokens for job in jobs}

    def report() -> int:
        from research.improve.study.report import draw_curve, read_findings, report_data, report_markdown

        return publish(read_findings(study, folder), folder.path, options, draw_curve, report_markdown, report_data)

    return carry_out(Undertaking(study, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)
