"""What a study consists of: jobs, what each waits for, and where its result lies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmark import UsageError
from research.credit.settings import STAGES, Study
from research.jobs.folder import Folder
from research.jobs.recipes import TUNING_SEED, ExperimentSettings

Kind = Literal["base", "stages", "measure", "draws", "think", "tune", "train", "ask"]


class StudyJob(NamedTuple):
    """A piece of work for one process; what doesn't apply to its kind is empty."""

    name: str  # unique, and the path of its result below the folder: ``"train/frozen-lake/rloo/0"``
    kind: Kind  # by which entry of WORK it is done
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    game: str = ""
    run: int = 0  # which plain run of the game: its base, its stages and what is measured of them
    stage: str = ""  # one of STAGES
    arm: str = ""
    seed: int = 0
    rate: float = 0.0  # the learning rate that is tried
    steps: int = 0  # of imitation, of a base of its own that is asked; 0: it asks along the plain run


def jobs_of(study: Study) -> list[StudyJob]:
    """Return all jobs of a study, in the order of importance.

    A study that is cut short has whole runs of what is measured; then methods are trained on the first game and on the
    others, seed by seed; the model that reasons comes last.
    """
    jobs = list[StudyJob]()
    sizes: dict[Kind, Any] = {"draws": study.draws, "measure": study.measurement}
    for run in range(study.runs):
        jobs += [base_job(game, run) for game in study.games]
        jobs += [
            StudyJob(f"stages/{game}/{run}", "stages", (f"base/{game}/{run}",), game, run, arm=study.plain)
            for game in study.games
        ]
        jobs += [
            StudyJob(f"{kind}/{game}/{run}/{stage}", kind, (_source(game, run, stage),), game, run, stage)
            for stage in STAGES
            for kind, size in sizes.items()
            if size is not None
            for game, about in study.games.items()
            if kind == "measure" or about.draws
        ]
    jobs += [*_trained(study, study.trained[:1]), *_trained(study, study.trained[1:])]
    if study.thinking is not None:
        jobs += [StudyJob(f"think/{name}", "think", game=name) for name in study.thinking.temperatures]
    return jobs


def base_job(game: str, run: int) -> StudyJob:
    """Return the job that makes the base of a run of a game."""
    return StudyJob(f"base/{game}/{run}", "base", game=game, run=run)


def _trained(study: Study, games: Sequence[str]) -> list[StudyJob]:
    """Return the training of every arm on some games, and its tuning if there are several rates."""
    tuned: dict[tuple[str, str], list[StudyJob]] = {}
    for game in games:
        stages = (f"stages/{game}/0",)
        for arm in study.arms:
            rates = study.rates_of(arm)
            tuned[game, arm] = [
                StudyJob(f"tune/{game}/{arm}/{rate:g}", "tune", stages, game, arm=arm, seed=TUNING_SEED, rate=rate)
                for rate in rates
                if len(rates) > 1
            ]
    jobs = [job for group in tuned.values() for job in group]
    for seed in range(study.seeds):
        for (game, arm), group in tuned.items():
            needs = tuple(job.name for job in group) or (f"stages/{game}/0",)
            jobs.append(StudyJob(f"train/{game}/{arm}/{seed}", "train", needs, game, arm=arm, seed=seed))
    return jobs


def _source(game: str, run: int, stage: str) -> str:
    return f"base/{game}/{run}" if stage == "base" else f"stages/{game}/{run}"


class StudyFolder(Folder):
    """The folder of one study.

    A measurement is done when it has all of ``methods``: if a method came in since, the same command measures that one.
    """

    def __init__(self, path: Path, methods: tuple[str, ...] = ()) -> None:
        super().__init__(path)
        self.methods = methods

    def claim(self, experiment: ExperimentSettings) -> None:
        """Claim the folder; one whose arms were tuned with the seed of a training run is refused."""
        super().claim(experiment)
        for file in self.path.glob("tune/*/*/*/result.json"):
            seed = self.result(str(file.parent.relative_to(self.path)))["settings"]["seed"]
            if seed != TUNING_SEED:
                raise UsageError(
                    f"{self.path} has arms that were tuned with seed {seed}, now it is {TUNING_SEED}; choose another "
                    "--out"
                )

    def is_done(self, name: str) -> bool:
        if not super().is_done(name):
            return False
        return not name.startswith("measure/") or not self.unmeasured(name)

    def unmeasured(self, name: str) -> list[str]:
        there: dict[str, Any] = self.result(name) if super().is_done(name) else {}
        known = {method["name"] for method in there.get("methods", ())} | set(there.get("skipped", ()))
        return [method for method in self.methods if method not in known]

    def stage(self, game: str, stage: str, run: int = 0) -> Path:
        """Return the folder of the model of a stage of a plain run; arms are trained from the base of run 0."""
        return self.path / _source(game, run, stage) / ("model" if stage == "base" else stage)
