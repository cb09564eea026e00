"""What a reproduction consists of: jobs, what each waits for, and where its result lies.

A job is done when its result file is there; result files appear in one step (:func:`write_result`), so what is there
is whole and a rerun does what is missing.
"""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from benchmark.errors import StorageError, UsageError
from benchmark.runs.folder import write_atomically
from research.reproduce.settings import Experiment

Kind = Literal["pretrain", "train", "play", "control"]
SETTINGS_NAME = "experiment.json"


class AnyJob(Protocol):
    """What the schedule, the timetable and the folder know of a job of any experiment."""

    @property
    def name(self) -> str:
        """Unique, and the path of its result below the folder."""

    @property
    def kind(self) -> str:
        """What sort of work it is; jobs of one kind go at one pace."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the jobs that must be done before."""


class Settings(Protocol):
    """What a folder knows of the settings of the experiment that it belongs to."""

    def as_data(self) -> dict[str, Any]:
        """All settings as plain data."""

    def differences(self, other: Any) -> dict[str, tuple[Any, Any]]:
        """``{setting: (own value, other's value)}`` against the data of other settings."""

    def additions(self, other: Any) -> list[str]:
        """Those of the differences that only add work, so that all results of the other settings stay good."""


class Job(NamedTuple):
    """A piece of work for one process.

    The ``agent`` is who is made, trained, played or tested: a base (``"small"``), a training run's name, or a reference
    agent. ``game``, ``arm`` and ``seed`` are those of a run, and empty for bases and reference agents.
    """

    name: str  # unique, and the path of its result below the folder: ``"train/snake/aaw/0"``
    kind: Kind  # which function of :mod:`work` does it
    needs: tuple[str, ...] = ()  # names of the jobs that must be done before
    agent: str = ""
    game: str = ""
    arm: str = ""
    seed: int = 0


def jobs_of(experiment: Experiment) -> list[Job]:
    """All jobs of an experiment, in the order of importance.

    They come seed by seed, each with its evaluation, so an experiment that is cut short has all arms with fewer seeds.
    """
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


class Folder:
    """The folder of one experiment, which :meth:`claim` makes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, experiment: Settings) -> None:
        """Make the folder this experiment's, or check that it is; one that only adds (seeds) takes it over.

        Raises:
            UsageError: it was made with other settings (named), or holds something else.
            StorageError: it can't be written.
        """
        file = self.path / SETTINGS_NAME
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                strangers = sorted(entry.name for entry in self.path.iterdir())
                if strangers:
                    raise UsageError(
                        f"{self.path} isn't empty (it holds {strangers[0]!r}) and isn't a reproduction; choose "
                        "another --out"
                    )
                self._write_settings(experiment)
            before = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise StorageError(f"can't use the folder {self.path}: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"{file} isn't a reproduction's settings ({error}); choose another --out") from None
        differences, more = experiment.differences(before), experiment.additions(before)
        for name in more:
            del differences[name]
        for name, (now, then) in differences.items():
            raise UsageError(
                f"{self.path} was made with {name} = {then!r}, now it is {now!r}; choose another --out or put it back"
            )
        if more:
            self._write_settings(experiment)

    def _write_settings(self, experiment: Settings) -> None:
        write_atomically(self.path / SETTINGS_NAME, json.dumps(experiment.as_data(), indent=1) + "\n")

    def model(self, agent: str) -> Path:
        """Where an agent's model is: a base, or the last checkpoint of a run."""
        return self.path / agent / "last" if "/" in agent else self.path / "pretrain" / agent / "model"

    def result_file(self, name: str) -> Path:
        return self.path / f"{name}/result.json"

    def is_done(self, name: str) -> bool:
        return self.result_file(name).exists()

    def result(self, name: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.result_file(name).read_text(encoding="utf-8"))
        return data

    def write_result(self, name: str, data: dict[str, Any]) -> None:
        file = self.result_file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(data) + "\n")
