"""The response cache: what a model said to a prompt, kept in one SQLite file and never asked (or paid for) twice.

If a row hasn't the form of a completion, or its checksum doesn't fit, the model is asked again. By default only
deterministic decoding is answered from it: with sampling, a second play of a state has to be a second draw.
"""

import asyncio
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from agents.common.reading import MOST_LINE, opened, sealed
from agents.common.redaction import Redactor
from agents.models.answers import LegalAnswers
from agents.models.base import AsyncLanguageModel, Decoding, LanguageModel, settings_of
from agents.models.served.answers import writable
from agents.models.served.pacing import PerLoop
from agents.turn import MOST_TOKENS, NO_USAGE, Prompt, Turn, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agents.models.tools import Tool

FORMAT = 1
"""Part of every key: raised when the meaning of an entry changes."""
_APPLICATION_ID = 0x74627263  # "tbrc", so that a foreign database is recognised
_TABLE = "responses (key TEXT PRIMARY KEY, completion TEXT) WITHOUT ROWID"
_BUSY_SECONDS = 60.0
_KEPT_AS = {"response": "text", "response_ids": "token_ids"}  # names in the file, as older versions wrote them
_NOT_KEPT = ("allowed", "discarded", "prompt", "uncounted")  # the prompt is in the key; nothing is learnt from a cache


class ResponseCacheError(ValueError):
    """The cache's file can't be used; the message has the reason and the remedy."""


class ResponseCache:
    """Completions by model, prompt and decoding, in a file that threads and processes may share; a ResponseCacheError
    if it can't be used.

    With ``sampled``, sampled decoding is answered from it, too; the key then includes the decision's seed.
    """

    def __init__(self, path: str | Path, *, sampled: bool = False) -> None:
        self.path = Path(path)
        self.sampled = sampled
        self._redactor = Redactor.from_environment()
        self.asking: PerLoop[dict[str, asyncio.Event]] = PerLoop()  # by key, set when an answer is there or failed
        self._lock = threading.Lock()
        self._connections: dict[int, sqlite3.Connection] = {}  # by process: none may be used after a fork
        len(self)

    def accepts(self, decoding: Decoding) -> bool:
        return self.sampled or decoding.deterministic

    @staticmethod
    def key(
        model: LanguageModel | AsyncLanguageModel,
        prompt: Prompt,
        decoding: Decoding,
        seed: tuple[int, ...],
        answers: "LegalAnswers | Tool | None" = None,
    ) -> str:
        draw = None if decoding.deterministic else seed
        said = [message if message.image else message[:2] for message in prompt]
        identity = [FORMAT, settings_of(model), said, asdict(decoding), draw]
        identity += [] if answers is None else [asdict(answers)]
        return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()

    def get(self, key: str) -> Turn | None:
        """Return the kept completion, marked as cached, or ``None``."""
        rows = self._run("SELECT completion FROM responses WHERE key = ?", (key,))
        return _read(rows[0][0]) if rows else None

    def put(self, key: str, completion: Turn) -> None:
        """Keep a completion, without any secret that the model repeated; no error, or one that can't be read back."""
        if completion.error is not None:
            return
        model = None if completion.served_by is None else writable(completion.served_by)
        kept = replace(completion, seconds=0.0, served_by=model, reasoning=writable(completion.reasoning))
        plain = {_KEPT_AS.get(name, name): value for name, value in asdict(kept).items() if name not in _NOT_KEPT}
        text = json.dumps(plain | {"usage": list(kept.usage)})
        row = sealed(self._redactor.scrub(text).encode(), b"}").decode()
        if _read(row) is not None:
            self._run("INSERT OR REPLACE INTO responses VALUES (?, ?)", (key, row))

    def __len__(self) -> int:
        return int(self._run("SELECT count(*) FROM responses")[0][0])

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _run(self, statement: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                if (process := os.getpid()) not in self._connections:
                    self._connections[process] = _connect(self.path)
                connection = self._connections[process]
                rows = connection.execute(statement, values).fetchall()
                connection.commit()
            return rows
        except (sqlite3.Error, OSError) as error:
            raise ResponseCacheError(
                f"the response cache {str(self.path)!r} can't be used: {error}. Name another file, or, if this was a "
                "cache of textbench's, delete it: responses are then asked for again"
            ) from None


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OSError("it isn't a file")
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LINE)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("BEGIN IMMEDIATE")  # no other process may come between the look at the owner and the mark
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if owner != _APPLICATION_ID:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                raise sqlite3.DatabaseError("the file is a database of another program")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
        # a view or a trigger would run a stranger's program with every question
        if connection.execute("SELECT type, sql FROM sqlite_master").fetchall() != [
            ("table", f"CREATE TABLE {_TABLE}")
        ]:
            raise sqlite3.DatabaseError("it has other tables than the one of a cache")
        connection.commit()
        # A write-ahead log lets readers continue beside a writer, and a lost last entry after a power cut is no harm.
        # SQLite doesn't wait by itself for a change of the journal's mode.
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _read(row: object) -> Turn | None:
    """Return the completion of a row, marked as cached; ``None`` if the row is damaged or was never one."""
    try:
        data = dict(_row_type().model_validate_json(opened(str(row).encode(), b"}")))
    except ValueError:
        return None
    return Turn(**{**data, "usage": Usage(*data["usage"])._replace(cached=True)})


@cache
def _row_type() -> "type[BaseModel]":
    """Return the form of a row: the fields of a Turn (earlier versions kept fewer), with an episode's limits."""
    from pydantic import ConfigDict, Field, create_model  # late, as few runs have a cache

    count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
    kinds: dict[str, Any] = get_type_hints(Turn) | {"error": None, "allowed": None}
    kinds["usage"] = Annotated[list[count | bool], Field(min_length=2, max_length=len(Usage._fields))]
    row: dict[str, Any] = {}
    for one in fields(Turn):
        required = one.default is MISSING or one.name == "usage"
        default = ... if required else one.default
        if one.name not in _NOT_KEPT or one.name == "allowed":
            row[one.name] = kinds[one.name], Field(default, alias=_KEPT_AS.get(one.name))
    return create_model("Row", __config__=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False), **row)


class _Kept:
    """A model whose answers are kept; all but being asked is the model's own. The two classes below are asked."""

    def __init__(self, model: Any, cache: ResponseCache) -> None:
        self.model, self.cache, self.name = model, cache, model.name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "generate")) or name == "model":
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(self.model, name)


class CachedModel(_Kept):
    """A batched model that asks the cache first; prompts whose answers have one key are asked once in a batch."""

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        *answers: Sequence[LegalAnswers | None] | None,
    ) -> list[Turn]:
        if not self.cache.accepts(decoding):
            return self.model.generate(prompts, decoding, seeds, *answers)  # type: ignore[no-any-return]
        legal = (answers and answers[0]) or [None] * len(prompts)
        keys = [
            self.cache.key(self.model, prompt, decoding, seed, own)
            for prompt, seed, own in zip(prompts, seeds, legal, strict=True)
        ]
        known = {key: kept for key in keys if (kept := self.cache.get(key)) is not None}
        rows = {key: row for row, key in reversed([*enumerate(keys)]) if key not in known}  # the first of each
        if rows:
            asked = sorted(rows.values())
            constrained = [[legal[row] for row in asked]] if answers else []
            fresh = self.model.generate(
                [prompts[row] for row in asked], decoding, [seeds[row] for row in asked], *constrained
            )
            for row, completion in zip(asked, fresh, strict=True):
                self.cache.put(keys[row], completion)
                known[keys[row]] = completion
        return [  # what is asked once is paid once
            known[key]
            if rows.get(key, row) == row
            else replace(known[key], usage=known[key].usage._replace(cached=True), discarded=NO_USAGE, seconds=0.0)
            for row, key in enumerate(keys)
        ]


class AsyncCachedModel(_Kept):
    """A model behind a server whose answers are kept. Equal prompts that are in flight together are asked once."""

    async def generate_async(
        self, prompt: Prompt, decoding: Decoding, seed: tuple[int, ...], *answers: "LegalAnswers | Tool | None"
    ) -> Turn:
        if not self.cache.accepts(decoding):
            return await self.model.generate_async(prompt, decoding, seed, *answers)  # type: ignore[no-any-return]
        key = self.cache.key(self.model, prompt, decoding, seed, *answers)
        asking: dict[str, asyncio.Event] = self.cache.asking.get(dict)
        completion = self.cache.get(key)
        if completion is None and key in asking:
            await asking[key].wait()
            completion = self.cache.get(key)
        if completion is not None:
            return completion
        # If the first one has failed, all that waited ask at once: from a server that is down they would else wait
        # for one failure after the other.
        answered = asking.setdefault(key, asyncio.Event())
        try:
            fresh: Turn = await self.model.generate_async(prompt, decoding, seed, *answers)
            self.cache.put(key, fresh)
            return fresh
        finally:
            asking.pop(key, None)
            answered.set()


def cached(model: LanguageModel | AsyncLanguageModel, cache: ResponseCache) -> CachedModel | AsyncCachedModel:
    """Return the model with a cache before it, which answers repeated questions."""
    return AsyncCachedModel(model, cache) if isinstance(model, AsyncLanguageModel) else CachedModel(model, cache)
