"""The command ``textbench reproduce --config credit-questions`` behind its options."""

from collections.abc import Mapping, Sequence
from typing import Any

from research.credit.command import BASE_SECONDS, PACKAGES
from research.credit.jobs import StudyFolder, StudyJob
from research.credit.questions.jobs import AskJob, jobs_of
from research.credit.questions.settings import Questions
from research.credit.work import make_base
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.jobs.work import Report, Work

PLAIN_TOKENS_PER_SECOND, SHORT_TOKENS_PER_SECOND = 10_000, 80_000
"""Of training on one core, if the recipe was first run: along plain runs, whose questions cost most, and in short
runs from a weak base."""


def ask_questions(questions: Questions, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = StudyFolder(options.out), jobs_of(questions)
    seconds = typical_seconds(questions, jobs)

    def report() -> int:
        return _report(questions, folder, options)

    return carry_out(Undertaking(questions, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)


def typical_seconds(questions: Questions, jobs: Sequence[StudyJob | AskJob]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` to begin with; what the jobs of a folder took corrects them."""
    penalty = questions.penalty
    short = 0.0 if penalty is None else len(penalty.penalties) * penalty.tokens / SHORT_TOKENS_PER_SECOND
    seconds = {job.name: BASE_SECONDS for job in jobs}
    for job in jobs:
        if isinstance(job, AskJob):
            plain = questions.games[job.game].tokens / PLAIN_TOKENS_PER_SECOND
            seconds[job.name] = short if job.steps else plain
    return seconds


def _ask(job: AskJob, questions: Questions, folder: StudyFolder, report: Report) -> dict[str, Any]:
    from research.credit.questions.work import ask  # needs torch, which who only reads a report may lack

    return ask(job, questions, folder, report)


WORK: Mapping[str, Work] = {"base": make_base, "ask": _ask}
"""By the kind of a job, what does it."""


def _report(questions: Questions, folder: StudyFolder, options: Options) -> int:
    from research.credit.questions.findings import read_findings
    from research.credit.questions.pictures import draw_plots
    from research.credit.questions.report import report_data, report_markdown

    return publish(read_findings(questions, folder), folder.path, options, draw_plots, report_markdown, report_data)
