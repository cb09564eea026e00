"""What tokens cost: prices from the user's own file, since they change and differ between contracts.

The file (TOML), US dollars per million tokens::

    [prices."gpt-4o-mini"]     # the model, or the agent's name or spec
    input = 0.15
    output = 0.60
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError

Price = dict[str, float]
"""``{"input": USD per million prompt tokens, "output": USD per million completion tokens}``."""


def read_prices(file: str | Path) -> dict[str, Price]:
    """The price table of a file.

    Raises:
        UsageError: it can't be read, or an entry isn't two numbers of at least 0; names the entry.
    """
    try:
        data = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read the price file {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the price file {file} isn't TOML: {error}") from None
    table = data.get("prices")
    if not isinstance(table, dict):
        raise UsageError(
            f'the price file {file} has no prices; write [prices."MODEL"] with input = ... and output = ...'
        )
    return {name: _price(entry, f"{file}, prices.{name}") for name, entry in table.items()}


def _price(entry: Any, where: str) -> Price:
    if not isinstance(entry, dict) or set(entry) != {"input", "output"}:
        raise UsageError(f"{where} must have input and output (USD per million tokens), got {entry!r}")
    for name, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise UsageError(f"{where}.{name} must be a number of at least 0 (USD per million tokens), got {value!r}")
    return {name: float(value) for name, value in entry.items()}


def price_of(table: Mapping[str, Price], names: Iterable[str | None]) -> Price | None:
    """The price under the first of an agent's names (its own, its spec, its model) that the table has."""
    return next((table[name] for name in names if name is not None and name in table), None)
