"""What the tokens of a run's agents cost: by the user's price file, else by the list prices that a provider knows.

Prices change and differ between contracts, so the file comes first. It is TOML, in US dollars per million tokens::

    [prices."gpt-4o-mini"]     # the model, or the agent's name or spec
    input = 0.15
    output = 0.60
    cached_input = 0.075       # of what the provider had of the prompt in its cache; as input if it isn't given
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agents.common.refusals import problem_of
from agents.common.toml import read_toml
from agents.models.provider import call_with, find_model
from agents.wrappers import innermost, models_inside, wrapped_in
from benchmark.errors import UsageError
from benchmark.play.options import RunOptions
from benchmark.runs.manifest import Price, PriceShape


def agent_prices(
    cards: Sequence[Mapping[str, Any]], options: RunOptions, before: Mapping[str, Price]
) -> dict[str, Price]:
    """Return ``{agent: price}``: of the price file, then as the run has had them ``before``, then of the list."""
    table = read_prices(options.prices) if options.prices else {}
    prices = dict(before)
    for card in cards:
        name, spec, model = card["name"], card["spec"], card["settings"].get("model")
        own = (name, spec) if wrapped_in(spec) else (name, spec, model)  # a wrapper's model is its first player's
        if (kind := card["settings"].get("model_kind")) is not None and not models_inside(spec):
            spec = f"{kind}:{model}"  # a policy that a program has made
        inside = price_inside(table, name, spec, options)
        named = any(price_of(table, (one, found[1])) for one in innermost(spec) if (found := find_model(one)))
        price = price_of(table, own) or (inside if named else prices.get(name) or inside)
        if price is not None:
            prices[name] = price
        elif options.max_cost is not None and is_paid(spec):
            paid = [inner for provider, inner in models_inside(spec) if provider.paid]
            several = f", one for {', '.join(paid)}: their tokens are counted together" if len(set(paid)) > 1 else ""
            raise UsageError(
                f"--max-cost needs a price for {name!r}{several}; give --prices FILE with "
                f'[prices."{name if several else paid[0]}"] input = ... output = ... (USD per million tokens)'
            )
        else:
            prices.pop(name, None)
    return prices


def price_inside(table: Mapping[str, Price], name: str, spec: str, options: RunOptions) -> Price | None:
    """Return the price of an agent's model by the price file's table, else by a provider's list; ``None`` if unknown.

    The tokens of several models inside are counted together: they have a price if it is the same for all.
    """
    given = {"base_url": options.base_url, **options.by_agent.get(name, {})}
    given = {key: value for key, value in given.items() if value is not None}
    prices = []
    for one in innermost(spec):
        if (found := find_model(one)) is not None:
            provider, model = found
            price = price_of(table, (one, model))
            if price is not None or provider.paid:
                prices.append(price or call_with(provider.price, given, model))
    if not prices or prices[0] is None or any(price != prices[0] for price in prices):
        return None
    return dict(prices[0])


def is_paid(spec: str) -> bool:
    """Report whether the tokens of an agent may cost money."""
    return any(provider.paid for provider, _ in models_inside(spec))


def read_prices(file: str | Path) -> dict[str, Price]:
    """Return the price table of a file; raises a UsageError that names the entry that is wrong."""
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
    """Return the price under the first of an agent's names (its own, its spec, its model) that the table has."""
    return next((table[name] for name in names if name is not None and name in table), None)
