"""Read a file of rows, JSON Lines or Parquet."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchmark import UsageError
from research.credit.checker.rows import Dump, Row
from textgames import install_command

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
