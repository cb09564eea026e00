"""Answers of servers that were paid for, of episodes that have no scored record yet: ``answers.jsonl`` of a run folder.

Neither a kill nor a limit loses what was paid for: a resume plays the episode again from its seed, and takes from here
what an earlier process was answered. A decision is known by its episode, its round, its player, the number of the
attempt, and by what was observed, so that an answer is never taken for another question's.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from zlib import crc32

from pydantic import Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from agents.common.files import member, open_for_appending, replacing
from agents.common.reading import LineTooLongError, opened, read_lines, sealed
from agents.common.redaction import Redactor
from agents.episode import EpisodeTask
from agents.turn import MOST_TOKENS, NO_USAGE, Turn, TurnRequest
from benchmark.errors import StorageError
from benchmark.runs.record import STRICT, Key

ANSWERS_NAME = "answers.jsonl"
_CLOSING = b"}\n"
_MOST_WASTE = 1 << 24  # bytes of answers that aren't needed any more, before the file is written anew

TOLD = {
    *("response", "finish_reason", "seconds", "served_by", "reasoning", "tool_calls", "cut", "left_out", "uncounted"),
    *("usage", "discarded"),
}
"""The fields of a :class:`~agents.turn.Turn` that a record tells of."""


@with_config(STRICT)
class _Line(TypedDict):
    """A line of the file: an answer, or that an episode ended unscored, whose record tells of the answers so far."""

    scenario: str
    agents: list[str]
    seed: int
    decision: NotRequired[
        Annotated[list[int], Field(min_length=2, description="The seed of the decision behind the episode's.")]
    ]
    observed: NotRequired[Annotated[int, Field(description="CRC-32 of the observation.")]]
    turn: NotRequired[Turn]
    recorded: NotRequired[Literal[True]]


class _Kept(NamedTuple):
    """One answer."""

    observed: int
    turn: Turn
    recorded: bool = False  # whether an unscored episode's record tells what was paid


Decision = tuple[int, ...]  # the round, the player's place and the attempt


class AnswersFile:
    """The file of a run folder; an :class:`~agents.loop.live.AnswerStore` for the loop that plays.

    The caller holds the lock of the folder at ``path``. ``scored`` gives the episodes whose answers aren't needed, as
    they have a scored record. A StorageError is raised if the file is a link, or can't be read or written.

    Attributes:
        damaged: lines that couldn't be read; what they had answered is asked again.
    """

    def __init__(
        self, path: Path, redactor: Redactor, scored: Callable[[], Collection[Key]] = tuple, *, writing: bool = True
    ) -> None:
        self._file, self._redactor, self._writing = path / ANSWERS_NAME, redactor, writing
        self._lock = Lock()  # answers arrive in the thread of the loop, and records are written in the caller's
        self._handle: int | None = None
        self._waste = 0
        self._recalled: set[int] = set()
        self.damaged = 0
        self._episodes: dict[Key, dict[Decision, _Kept]] = {}
        try:
            with member(path, ANSWERS_NAME).open("rb") as stream:
                lines = list(read_lines(stream))
        except LineTooLongError as error:
            raise StorageError(f"{self._file} isn't what a run keeps: {error}") from None
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"can't read {self._file}: {error.strerror}") from None
        done = scored()
        for line in lines:
            try:
                self._take(_type(_Line).validate_json(opened(line, _CLOSING)), done)
            except (ValueError, KeyError):
                self.damaged += 1
        self._rewrite()

    def _take(self, line: Mapping[str, Any], scored: Collection[Key]) -> None:
        key = Key(line["scenario"], tuple(line["agents"]), line["seed"])
        if key in scored:
            return
        if line.get("recorded"):
            self._mark_recorded(key)
            return
        if line["decision"][1] not in range(len(key.agents)):
            raise ValueError("the decision is of no player of the episode")
        turn: Turn = line["turn"]
        if any(count > MOST_TOKENS or count < 0 for usage in (turn.usage, turn.discarded) for count in usage):
            raise ValueError("an answer has more tokens than any has")
        if _type(Turn).dump_python(turn, exclude=TOLD, exclude_defaults=True):
            raise ValueError("an answer has keys that records of answers don't have")
        self._episodes.setdefault(key, {})[tuple(line["decision"])] = _Kept(line["observed"], turn)

    def recall(self, task: EpisodeTask, request: TurnRequest) -> Turn | None:
        with self._lock:
            kept = self._episodes.get(_key_of(task), {}).get(_decision_of(task, request))
            if kept is None or kept.observed != _observed(request):
                return None
            self._recalled.add(id(kept.turn))  # which stays here as long as the episode is open
            return kept.turn

    def keep(self, task: EpisodeTask, request: TurnRequest, turn: Turn) -> None:
        """Write an answer that has just arrived; a provider's error is none."""
        if turn.error is not None:
            return
        key, decision, kept = _key_of(task), _decision_of(task, request), _Kept(_observed(request), turn)
        with self._lock:
            self._episodes.setdefault(key, {})[decision] = kept
            self._append(_line_of(key, decision, kept))

    def was_recalled(self, turn: Turn) -> bool:
        """Report whether an answer is one of an earlier process's, which :attr:`unrecorded_tokens` has counted."""
        return id(turn) in self._recalled

    def close_episode(self, key: Key, *, scored: bool) -> None:
        """Drop the answers of an episode that has a record; if it is unscored, they are kept for its next play."""
        with self._lock:
            if not scored:
                self._mark_recorded(key)
                if key in self._episodes:
                    self._append(_line(key) | {"recorded": True})
                return
            if dropped := self._episodes.pop(key, None):
                self._waste += sum(200 + len(kept.turn.response + kept.turn.reasoning) for kept in dropped.values())
                self._recalled -= {id(kept.turn) for kept in dropped.values()}
            if self._waste > _MOST_WASTE:
                self._rewrite()

    def _mark_recorded(self, key: Key) -> None:
        for decision, kept in self._episodes.get(key, {}).items():
            if not kept.recorded:  # nothing is paid for it again
                usage = kept.turn.usage._replace(cached=True)
                turn = replace(kept.turn, usage=usage, discarded=NO_USAGE)
                self._episodes[key][decision] = kept._replace(turn=turn, recorded=True)

    @property
    def unrecorded_tokens(self) -> dict[str, list[int]]:
        """``{agent: [prompt, completion, cached prompt tokens]}`` that were paid for and stand in no record."""
        found: dict[str, list[int]] = {}
        for key, answers in self._episodes.items():
            for decision, kept in answers.items():
                agent, paid = key.agents[decision[1]], kept.turn.paid
                counts = (paid.prompt_tokens, paid.completion_tokens, paid.cached_prompt_tokens)
                found[agent] = [one + more for one, more in zip(found.get(agent, [0, 0, 0]), counts, strict=True)]
        return {agent: tokens for agent, tokens in found.items() if any(tokens)}

    def take_over(self, others: Iterable["AnswersFile"], scored: Collection[Key]) -> None:
        """Add the answers of other runs that are merged into this one, of episodes that none of them has scored."""
        for other in others:
            for key, answers in other._episodes.items():
                if key not in scored:
                    self._episodes.setdefault(key, {}).update(answers)
        self._rewrite()

    def close(self) -> None:
        """Leave a file of what is still needed, or none."""
        with suppress(StorageError):  # a full disk was reported by the write that met it; what was there is there
            self._rewrite()

    def _lines(self) -> Iterator[dict[str, Any]]:
        for key, answers in self._episodes.items():
            marked = {decision: kept for decision, kept in answers.items() if kept.recorded}
            yield from (_line_of(key, decision, kept) for decision, kept in marked.items())
            if marked:
                yield _line(key) | {"recorded": True}
            yield from (_line_of(key, decision, kept) for decision, kept in answers.items() if not kept.recorded)

    def _bytes(self, line: Mapping[str, Any]) -> bytes:
        text = json.dumps(line, separators=(",", ":"))  # ASCII, so that half a surrogate pair is held as well
        return sealed(self._redactor.scrub(text).encode() + b"\n", _CLOSING)

    def _rewrite(self) -> None:
        self._waste = 0
        if not self._writing:
            return
        try:
            if not self._episodes:
                self._file.unlink(missing_ok=True)
            else:
                with replacing(self._file, "wb") as stream:
                    stream.writelines(map(self._bytes, self._lines()))
        except OSError as error:
            raise StorageError(f"can't write {self._file}: {error.strerror}") from None
        finally:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _append(self, line: Mapping[str, Any]) -> None:
        data = self._bytes(line)
        try:
            if self._handle is None:
                self._handle = open_for_appending(self._file)
            written = 0
            while written < len(data):
                written += os.write(self._handle, data[written:])
        except OSError as error:
            raise StorageError(f"can't write to {self._file}: {error.strerror}") from None


def _key_of(task: EpisodeTask) -> Key:
    return Key(task.scenario, task.team, task.seed)


def _decision_of(task: EpisodeTask, request: TurnRequest) -> Decision:
    return request.seed[1 + len(task.noise) :]


def _observed(request: TurnRequest) -> int:
    return crc32(request.observation.encode("utf-8", "surrogatepass"))


def _line(key: Key) -> dict[str, Any]:
    return {"scenario": key.scenario, "agents": list(key.agents), "seed": key.seed}


def _line_of(key: Key, decision: Decision, kept: _Kept) -> dict[str, Any]:
    turn = _type(Turn).dump_python(kept.turn, include=TOLD, exclude_defaults=True)
    return _line(key) | {"decision": decision, "observed": kept.observed, "turn": turn}


@cache
def _type(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
