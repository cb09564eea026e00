"""The parts that every experiment has, whatever it is about: jobs, and a folder of results.

A job is done when its result file is there; result files appear in one step (:meth:`Folder.write_result`), so what is
there is whole and a rerun does what is missing.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from agents.common import read_json, strangers
from benchmark import StorageError, UsageError
from benchmark.runs import write_atomically
from research.jobs.recipes import ExperimentSettings

SETTINGS_NAME = "experiment.json"


class AnyJob(Protocol):
    """What the schedule, the timetable and the folder know of a job of any experiment.

    Its ``name`` is unique, and the path of its result below the folder; jobs of one ``kind`` go at one pace; ``needs``
    are the names of the jobs that must be done before.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def needs(self) -> tuple[str, ...]: ...


class Results(NamedTuple):
    """What is there of an experiment's jobs."""

    there: Mapping[str, dict[str, Any]]  # ``{job: its result}``
    missing: tuple[str, ...]  # names of the jobs that have none, or not all of it

    @property
    def code(self) -> tuple[str, ...]:
        """The versions that did the jobs."""
        return tuple(dict.fromkeys(result["facts"]["textbench"] for result in self.there.values()))


class Folder:
    """The folder of one experiment, which :meth:`claim` makes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, experiment: ExperimentSettings) -> None:
        """Make the folder this experiment's, or check that it is; one that only adds (seeds) takes it over.

        Raises:
            UsageError: it was made with other settings (named), or holds something else.
            StorageError: it can't be written.
        """
        file = self.path / SETTINGS_NAME
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                if found := strangers(self.path, SETTINGS_NAME):
                    raise UsageError(
                        f"{self.path} isn't empty (it holds {found[0]!r}) and isn't a reproduction; choose "
                        "another --out"
                    )
                self._write_settings(experiment)
            before = read_json(file)
        except OSError as error:
            raise StorageError(f"can't use the folder {self.path}: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"{file} isn't a reproduction's settings ({error}); choose another --out") from None
        differences, more = experiment.differences(before), experiment.additions(before)
        for name in more:
            del differences[name]
        for name, (now, then) in sorted(differences.items(), key=lambda one: one[0] != "kind"):  # which says most
            raise UsageError(
                f"{self.path} was made with {name} = {then!r}, now it is {now!r}; give the recipe and the "
                "options that it was made with, or choose another --out"
            )
        if more:
            self._write_settings(experiment)

    def _write_settings(self, experiment: ExperimentSettings) -> None:
        write_atomically(self.path / SETTINGS_NAME, json.dumps(experiment.as_data(), indent=1) + "\n")

    def result_file(self, name: str) -> Path:
        return self.path / f"{name}/result.json"

    def is_done(self, name: str) -> bool:
        return self.result_file(name).exists()

    def result(self, name: str) -> dict[str, Any]:
        """Return what a job found.

        Raises:
            UsageError: its file is damaged.
        """
        file = self.result_file(name)
        try:
            data: dict[str, Any] = read_json(file)
        except ValueError as error:
            raise UsageError(
                f"{file} is damaged ({error}); delete it, and the same command does its job anew"
            ) from None
        return data

    def results(self, jobs: Sequence[AnyJob]) -> Results:
        """Return the results of all jobs that are there."""
        there = {job.name: self.result(job.name) for job in jobs if self.result_file(job.name).exists()}
        return Results(there, tuple(job.name for job in jobs if not self.is_done(job.name)))

    def write_result(self, name: str, data: dict[str, Any]) -> None:
        file = self.result_file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(data) + "\n")

    def begin(self, job: Any, experiment: Any) -> None:
        """Called before a job is done that has no result: nothing is to be prepared for it."""
