"""The rows that a trainer writes, one for each span of tokens, and how a file of them is read."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents.msgrpo.credit import Bools, Floats
from benchmark import UsageError
from textgames import install_command

Label = int | str
BY_TOKEN = ("mask", "advantage", "value", "weight", "sampler_logprobs", "old_logprobs", "new_logprobs")


class Row(BaseModel):
    """A span of an episode's tokens: one response of the model, or what stands before or after it.

    A value for each token is a list; one number holds for all tokens of the span.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    group: Label
    """The episodes that are compared with each other have one label."""
    episode: Label
    """The rows of one episode have one label."""
    turn: int = Field(ge=0, lt=2**31)
    """The response's place in its episode, from 0; a prompt has that of the response after it."""
    kind: Literal["response", "prompt", "observation", "padding"] = "response"
    """Only a response is sampled from the model, and trained."""
    update: int = 0
    """The iteration that the row was trained in."""
    tokens: int | None = Field(None, ge=1, le=2**20)
    """The number of the span's tokens; not needed with ``token_ids``."""
    token_ids: tuple[int, ...] | None = Field(None, min_length=1)
    cut_off: bool = False
    """Whether the response ended at the limit of tokens, without an end-of-sequence token."""
    state: Label | None = None
    """The observation, or a hash of it for methods that compare states; the truth needs the observation itself."""
    action: str | None = None
    """The action that was read from the response; left out of an invalid one. For the truth, as ``layout`` is."""
    layout: int | None = None
    """The ``layout_seed`` that the episode began with."""
    player: str = "player_0"
    """The seat; what each player of a game does is an episode with a label of its own."""
    reward: float = 0.0
    """The turn's own; rewards of all of an episode's rows add up to its return."""
    advantage: float | tuple[float, ...] | None = None
    value: float | tuple[float, ...] | None = None
    """A critic's, before the turn, or before each token."""
    mask: bool | tuple[bool, ...] | None = None
    """Whether the loss counts a token; left out: it counts responses alone, which is then not checked."""
    weight: float | tuple[float, ...] | None = None
    """The factor of a token in the loss, once this is normalised."""
    sampler_logprobs: tuple[float, ...] | None = None
    """Log-probabilities of the response's tokens in nats, as the sampler told them."""
    old_logprobs: tuple[float, ...] | None = None
    """As the learner computed them before the update."""
    new_logprobs: tuple[float, ...] | None = None
    """As the learner computed them in the update's first forward pass."""

    @model_validator(mode="after")
    def _equal_lengths(self) -> Self:
        for name in BY_TOKEN:
            if isinstance(own := getattr(self, name), tuple) and len(own) != self.length:
                raise ValueError(f"{name} has {len(own)} values for {self.length} tokens")
        return self

    @property
    def length(self) -> int:
        """The number of tokens, 1 if the row doesn't tell it."""
        if self.tokens or self.token_ids:
            return self.tokens or len(self.token_ids or ())
        return next((len(own) for name in BY_TOKEN if isinstance(own := getattr(self, name), tuple)), 1)

    @property
    def trained(self) -> Bools:
        """(tokens,) whether the loss counts a token: all of a response's if the row has no mask."""
        if isinstance(self.mask, tuple):
            return np.array(self.mask)
        return np.full(self.length, self.kind == "response" if self.mask is None else self.mask)

    def each(self, name: str) -> Any:
        """Return (tokens,) values of a field that may be one number; ``None`` if the row doesn't have it."""
        own = getattr(self, name)
        return own if own is None or isinstance(own, tuple) else (own,) * self.length


@dataclass(frozen=True)
class Dump:
    """The rows of a file, in its order."""

    rows: Sequence[Row]

    @cached_property
    def episodes(self) -> dict[tuple[int, Label], list[Row]]:
        """``{(update, episode): its responses by turn}``, in the order in which episodes first appear."""
        found: dict[tuple[int, Label], list[Row]] = {}
        for row in self.responses:
            found.setdefault((row.update, row.episode), []).append(row)
        return {key: sorted(rows, key=lambda row: row.turn) for key, rows in found.items()}

    @cached_property
    def responses(self) -> list[Row]:
        return [row for row in self.rows if row.kind == "response"]

    def richest_update(self) -> "Dump":
        """Return the rows of the update with the most different advantages."""
        different = {(row.update, row.advantage) for row in self.responses}
        chosen = most_common([update for update, _ in different])
        return Dump([row for row in self.rows if row.update == chosen])

    def has(self, name: str) -> bool:
        """Return whether all responses have a field."""
        return all(getattr(row, name) is not None for row in self.responses)

    def values(self, name: str) -> Floats | Bools:
        """Return a field of all responses' tokens in one array."""
        return np.concatenate([np.asarray(row.each(name)) for row in self.responses])


def place(row: Row) -> str:
    """Name a row as messages do."""
    update = f"update {row.update}, " if row.update else ""
    return f"{update}group {row.group!r}, episode {row.episode!r}, turn {row.turn}"


def most_common(values: Sequence[Any]) -> Any:
    """Return the value that is there most often, the first of equals."""
    return Counter(values).most_common(1)[0][0]


LARGEST = 2**30
"""Bytes of a file that is read."""


def read(path: Path) -> Dump:
    """Read a file of rows, JSON Lines or Parquet; a UsageError names the line that isn't one."""
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path} is larger than {LARGEST:,} bytes: write fewer updates to it")
        lines = _parquet(path) if path.suffix == ".parquet" else _json_lines(path)
        rows = [_row(path, number, line) for number, line in lines]
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    if not any(row.kind == "response" for row in rows):
        raise UsageError(
            f"{path} has {len(rows)} rows and no response: a row of kind 'response' is one that is trained"
        )
    return Dump(rows)


def _row(path: Path, number: int, line: Any) -> Row:
    try:
        return Row.model_validate(line)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        name = ".".join(map(str, wrong["loc"]))
        said = wrong["msg"].removeprefix("Value error, ")
        if wrong["type"] == "model_type":
            said = f"a {type(line).__name__} isn't a row: each line is one JSON object"
        fields = f"; the fields are {', '.join(Row.model_fields)}" if wrong["type"] == "extra_forbidden" else ""
        raise UsageError(f"{path}, row {number}: {name + ': ' if name else ''}{said}{fields}") from None


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                if line.strip():
                    yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path}, row {number} isn't JSON ({error}): each line is one JSON object") from None


def _parquet(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(f"Parquet needs pyarrow: {install_command('plots')}") from None
    try:
        with pq.ParquetFile(path) as file:
            batches = (batch.to_pylist() for batch in file.iter_batches(10_000))
            lines = [line for batch in batches for line in batch]
    except pa.ArrowException as error:
        raise UsageError(f"{path} isn't Parquet: {error}") from None
    for number, line in enumerate(lines, 1):  # a column that a row has no value for is null
        yield number, {name: value for name, value in line.items() if value is not None}
