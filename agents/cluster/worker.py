"""The code on a worker of the cluster: players that are made there, and episodes that are sent back as they end."""

import socket
import traceback
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

from agents.common.redaction import Redactor
from agents.episode import Episode, EpisodeTask
from agents.loop.live import Policies
from agents.loop.rollout import rollout

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SECONDS_BETWEEN_PARCELS = 0.1
"""Results travel together if episodes end faster than this: a message each would cost more than they do."""

Place = tuple[str, int]
"""What tells the tasks of one rollout apart: the scenario and the seed."""


class Setup(Protocol[T_co]):
    """What a worker is sent with its tasks: how to make what plays, and what of an episode is sent back.

    It can be pickled and compared: a worker keeps what it has made as long as equal setups come.
    """

    def make(self) -> Any:
        """Make on the worker what takes long to make: the players, or the engine that they share."""

    def policies(self, made: Any, news: Any) -> Policies:
        """Return who plays the tasks that came with ``news``, such as new weights, which are taken over first."""

    def result(self, episode: Episode) -> T_co:
        """Return the part of an episode that is sent back. It is made on the worker, to spare the driver."""


class AskedSetup(Setup[T_co], Protocol[T_co]):
    """A setup of workers that are also asked other things than to play."""

    def answer(self, made: Any, news: Any, question: Any) -> Any:
        """Return the answer of one worker, after it has taken over ``news``."""


class PlayError(Exception):
    """The players of a worker failed, in their ``making`` or in play; the worker's secrets are redacted."""

    def __init__(self, kind: str, reason: str, host: str, making: bool, trace: str) -> None:
        super().__init__(kind, reason, host, making, trace)  # what pickle makes it of again
        self.kind, self.reason, self.host, self.making, self.trace = kind, reason, host, making, trace

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason} (on the worker {self.host})"


class EpisodeWorker:
    """Plays tasks in a process of its own. All that it needs comes with each call, for workers that replace others."""

    def __init__(self) -> None:
        self._setup: Setup[Any] | None = None
        self._made: Any = None

    def play(
        self, setup: Setup[T], news: Any, tasks: Sequence[EpisodeTask], max_concurrency: int
    ) -> Iterator[list[tuple[Place, T]]]:
        """Play all tasks, and yield what the setup makes of their episodes, a parcel of those that ended at a time."""
        making = True
        try:
            policies = setup.policies(self._made_by(setup), news)
            making = False
            parcel, sent = [], monotonic()
            for episode in rollout(policies, tasks, max_concurrency=max_concurrency):
                parcel.append(((episode.scenario, episode.seed), setup.result(episode)))
                if monotonic() - sent >= SECONDS_BETWEEN_PARCELS:
                    yield parcel
                    parcel, sent = [], monotonic()
            yield parcel
        except Exception as error:  # noqa: BLE001 - it is told on another machine
            raise _play_error(error, making) from None

    def ask(self, setup: AskedSetup[Any], news: Any, question: Any) -> Any:
        """Return the setup's answer to a question, after it has taken over ``news``; raise as :meth:`play`."""
        try:
            return setup.answer(self._made_by(setup), news, question)
        except Exception as error:  # noqa: BLE001 - it is told on another machine
            raise _play_error(error, making=True) from None

    def _made_by(self, setup: Setup[Any]) -> Any:
        if self._setup is None or setup != self._setup:
            self._made = self._setup = None  # the old one goes before the new one comes
            self._made, self._setup = setup.make(), setup
        return self._made


def _play_error(error: Exception, making: bool) -> PlayError:
    """Make the error that the driver gets, in words and without this machine's secrets."""
    redactor = Redactor.from_environment()  # the driver doesn't know this machine's secrets
    reason = redactor.scrub(" ".join(str(error).split()))
    trace = redactor.scrub("".join(traceback.format_exception(error)))
    return PlayError(type(error).__name__, reason, socket.gethostname(), making, trace)
