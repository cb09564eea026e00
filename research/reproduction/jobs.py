"""What a reproduction consists of: jobs, what each waits for, and where its models lie."""

from pathlib import Path
from typing import Literal, NamedTuple

from research.jobs.folder import Folder
from research.reproduction.settings import Experiment

Kind = Literal["pretrain", "train", "play", "control"]


class Job(NamedTuple):
    """A piece of work for one process; ``game``, ``arm`` and ``seed`` are empty for bases and reference agents."""

    name: str  # unique, and the path of its result below the folder: ``"train/snake/aaw/0"``
    kind: Kind  # which function of :mod:`work` does it
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    agent: str = ""
    game: str = ""
    arm: str = ""
    seed: int = 0


def jobs_of(experiment: Experiment) -> list[Job]:
    """Return all jobs, seed by seed: an experiment that is cut short has all arms with fewer seeds."""
    jobs = [Job(f"pretrain/{name}", "pretrain", agent=name) for name in experiment.bases]
    jobs += [Job(f"play/{name}", "play", (f"pretrain/{name}",), name) for name in experiment.bases]
    jobs += [Job(f"play/{name}", "play", (), name) for name in experiment.reference_agents]
    if experiment.control_episodes:
        jobs.append(Job("control/small", "control", ("pretrain/small",), "small"))
    first = next(iter(experiment.arms))
    for seed in range(experiment.seeds):
        runs = [
            Job(name := f"train/{game}/{arm}/{seed}", "train", ("pretrain/small",), name, game, arm, seed)
            for game in experiment.games
            for arm in experiment.arms
        ]
        jobs += runs
        jobs += [run._replace(name=f"play/{run.name}", kind="play", needs=(run.name,)) for run in runs]
        if experiment.control_episodes:
            own = [run for run in runs if run.arm == first]
            jobs += [run._replace(name=f"control/{run.name}", kind="control", needs=(run.name,)) for run in own]
    return jobs


class ReproductionFolder(Folder):
    """The folder of one reproduction."""

    def model(self, agent: str) -> Path:
        """Return the folder of an agent's model: a base, or the last checkpoint of a run."""
        return self.path / agent / "last" if "/" in agent else self.path / "pretrain" / agent / "model"
