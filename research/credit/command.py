"""The commands ``textbench reproduce --config credit`` and ``credit-questions``: estimate, work, report."""

from collections.abc import Mapping

from agents.models import embedded_agents
from agents.msgrpo.credit import METHODS
from research.credit.questions.settings import Questions
from research.credit.questions.settings import jobs_of as questions_jobs_of
from research.credit.settings import Study, StudyFolder, StudyJob, jobs_of
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.report import publish
from research.reproduction.pretrained.jobs import batch_seconds

PACKAGES = ("torch", "transformers", "tokenizers", "scipy")

TOKENS_PER_SECOND = 60_000
"""That a training run spends on one core, evaluations included; if the recipe credit was first run."""

BASE_SECONDS = 30.0
SECONDS_OF_BATCH = {"measure": 1.7, "draws": 0.6, "think": 14.0}
"""What the other kinds of jobs took on that core: a base, and a batch of draws or measures, by a tiny model."""

PLAIN_TOKENS_PER_SECOND, SHORT_TOKENS_PER_SECOND = 10_000, 80_000
"""The pace of a run that asks questions, on one core: along a plain run (the dearest), and from a weak base."""

WORK = {
    "base": "research.credit.training:make_base",
    "stages": "research.credit.training:make_stages",
    "measure": "research.credit.measuring:methods_at",
    "draws": "research.credit.measuring:draws_at",
    "think": "research.credit.measuring:draws_of_thinking",
    "tune": "research.credit.training:tune",
    "train": "research.credit.training:train_arm",
    "ask": "research.credit.questions.work:ask",
}
"""By the kind of a job, what does it."""


def study_credit(study: Study, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = StudyFolder(options.out, study.methods or METHODS.names), jobs_of(study)

    def report() -> int:
        from research.credit.findings import read_findings
        from research.credit.plots import draw_plots
        from research.credit.report import report_data, report_markdown

        return publish(read_findings(study, folder), folder.path, options, draw_plots, report_markdown, report_data)

    seconds = typical_seconds(study, jobs)
    # the models are so small that a second thread costs more than it saves
    return carry_out(Undertaking(study, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)


def typical_seconds(study: Study, jobs: list[StudyJob]) -> Mapping[str, float]:
    """Return ``{job: seconds}`` to begin with; what the jobs of a folder took corrects them."""
    sizes = {"measure": study.measurement, "draws": study.draws, "think": study.thinking}
    batches = {kind: size.batches for kind, size in sizes.items() if size is not None}
    large = study.thinking if study.thinking is not None and study.thinking.agent not in embedded_agents() else None
    seconds = {}
    for job in jobs:
        if job.kind in ("stages", "tune", "train"):
            share = study.tuning_share if job.kind == "tune" else 1.0
            seconds[job.name] = 3.0 + study.games[job.game].tokens * share / TOKENS_PER_SECOND
        elif job.kind == "think" and large is not None:  # two passes: all batches' gradients, and every episode's
            seconds[job.name] = large.batches * batch_seconds(job.game, large.groups * large.group_size)
        else:
            seconds[job.name] = SECONDS_OF_BATCH[job.kind] * batches[job.kind] if job.kind in batches else BASE_SECONDS
    return seconds


def ask_questions(questions: Questions, options: Options) -> int:
    """Answer what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = StudyFolder(options.out), questions_jobs_of(questions)
    penalty = questions.penalty
    short = 0.0 if penalty is None else len(penalty.penalties) * penalty.tokens / SHORT_TOKENS_PER_SECOND
    seconds = {job.name: BASE_SECONDS for job in jobs}
    for job in jobs:
        if job.kind == "ask":
            plain = questions.games[job.game].tokens / PLAIN_TOKENS_PER_SECOND
            seconds[job.name] = short if job.steps else plain

    def report() -> int:
        from research.credit.questions.answers import read_findings
        from research.credit.questions.report import draw_plots, report_data, report_markdown

        found = read_findings(questions, folder)
        return publish(found, folder.path, options, draw_plots, report_markdown, report_data)

    return carry_out(Undertaking(questions, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)
