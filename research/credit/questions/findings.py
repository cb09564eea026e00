"""What the questions' jobs have found so far, read from their folder or from a stored report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from research.credit.findings import Made, made_of
from research.credit.jobs import StudyFolder
from research.credit.questions.jobs import jobs_of
from research.credit.questions.settings import Questions


@dataclass(frozen=True)
class Asked(Made):
    """Everything that was found so far; ``asked`` is ``{job: what it found}``."""

    study: Questions
    asked: Mapping[str, Mapping[str, Any]]


def read_findings(questions: Questions, folder: StudyFolder) -> Asked:
    """Read the results of all jobs that are there."""
    jobs = jobs_of(questions)
    results = folder.results(jobs)
    asked = {job.name: results.there[job.name] for job in jobs if job.kind == "ask" and job.name in results.there}
    return Asked(**made_of(questions, jobs, results), asked=asked)


def findings_of(report: Mapping[str, Any]) -> Asked:
    """Return the findings that a report was made of, the bases' losses and the times of single jobs aside."""
    questions = Questions.model_validate(report["settings"])
    seconds, asked = {"all": report["seconds"]}, {row["job"]: row for row in report["asked"]}
    return Asked(questions, {}, report["missing"], seconds, report["code"], asked)
