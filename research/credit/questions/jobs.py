"""What the questions consist of: bases, made as the study makes its own, and jobs that ask."""

from typing import Literal, NamedTuple

from research.credit.jobs import StudyJob, base_job
from research.credit.questions.settings import Questions


class AskJob(NamedTuple):
    """A piece of work that asks, for one process."""

    name: str  # unique, and the path of its result below the folder: ``"ask/frozen-lake/0/plain"``
    game: str
    run: int
    steps: int = 0  # of imitation, of a base of its own; 0: it asks along the plain run
    needs: tuple[str, ...] = ()
    kind: Literal["ask"] = "ask"


def jobs_of(questions: Questions) -> list[StudyJob | AskJob]:
    """Return all jobs, run by run, so that one that is cut short has some runs of every game."""
    jobs: list[StudyJob | AskJob] = []
    for run in range(questions.seeds):
        for game in questions.games:
            base = base_job(game, run)
            jobs += [base, AskJob(f"ask/{game}/{run}/plain", game, run, needs=(base.name,))]
        jobs += [
            AskJob(f"ask/{game}/{run}/{steps}", game, run, steps)
            for game, about in questions.games.items()
            for steps in (about.imitation if questions.penalty is not None else ())
        ]
    return jobs
