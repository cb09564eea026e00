"""What tokens cost: prices from the user's own file, since they change and differ between contracts.

The file (TOML), US dollars per million tokens::

    [prices."gpt-4o-mini"]     # the model, or the agent's name or spec
    input = 0.15
    output = 0.60
    cached_input = 0.075       # of what the provider had of the prompt in its cache; as input where it isn't given

Where the file has none, a provider may know its list prices (:attr:`agents.models.provider.Provider.price`).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agents.toml import read_toml
from benchmark.errors import UsageError, problem_of
from benchmark.runs.manifest import Price, PriceShape


def read_prices(file: str | Path) -> dict[str, Price]:
    """The price table of a file.

    Raises:
        UsageError: it can't be read, or an entry isn't two numbers of at least 0; names the entry.
    """
    data = read_toml(Path(file), f"the price file {file}", UsageError)
    try:
        accepted: TypeAdapter[Any] = TypeAdapter(dict[str, PriceShape])
        return dict(accepted.validate_python(data.get("prices")))
    except ValidationError as error:
        raise UsageError(
            f"the price file {file}: {problem_of(error, 'prices')}; write (in USD per million tokens) "
            '[prices."MODEL"] with input = ... and output = ...'
        ) from None


def price_of(table: Mapping[str, Price], names: Iterable[str | None]) -> Price | None:
    """The price under the first of an agent's names (its own, its spec, its model) that the table has."""
    return next((table[name] for name in names if name is not None and name in table), None)
