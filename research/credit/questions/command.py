"""The command ``textbench reproduce --config credit-questions`` behind its options."""

from collections.abc import Mapping, Sequence

from research.credit.command import BASE, BASE_SECONDS, PACKAGES
from research.credit.jobs import Later, StudyFolder, StudyJob
from research.credit.questions.settings import AskJob, Questions, jobs_of
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish

PLAIN_TOKENS_PER_SECOND, SHORT_TOKENS_PER_SECOND = 10_000, 80_000
"""The pace of training on one core: along plain runs, whose questions cost most, and in short runs from a weak base."""


WORK = {"base": BASE, "ask": Later("research.credit.questions.work:ask")}
"""By the kind of a job, what does it."""


def ask_questions(questions: Questions, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = StudyFolder(options.out), jobs_of(questions)
    seconds = typical_seconds(questions, jobs)

    def report() -> int:
        from research.credit.questions.answers import read_findings
        from research.credit.questions.report import draw_plots, report_data, report_markdown

        found = read_findings(questions, folder)
        return publish(found, folder.path, options, draw_plots, report_markdown, report_data)

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
