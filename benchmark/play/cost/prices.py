"""What the tokens of a run's agents cost: by the user's price file, else by the list prices that a provider knows."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.models.provider import call_with, find_model
from benchmark.errors import UsageError
from benchmark.play.options import RunOptions
from benchmark.runs.manifest import Price
from benchmark.score.prices import price_of, read_prices


def agent_prices(
    cards: Sequence[Mapping[str, Any]], options: RunOptions, before: Mapping[str, Price]
) -> dict[str, Price]:
    """``{agent: price}``: those of the price file, then those that the run has had ``before``, then list prices.

    Args:
        cards: ``name`` and ``spec`` of every agent, and its ``settings`` with the model's name.
        options: of the run.
        before: of an earlier process of the run.

    Raises:
        UsageError: the file is wrong, or the money is limited and tokens of an agent cost nobody knows how much.
    """
    table = read_prices(options.prices) if options.prices else {}
    prices = dict(before)
    for card in cards:
        name, spec, model = card["name"], card["spec"], card["settings"].get("model")
        if (kind := card["settings"].get("model_kind")) is not None and find_model(spec) is None:
            spec = f"{kind}:{model}"  # a policy that a program has made
        price = price_of(table, (name, card["spec"], model)) or prices.get(name) or list_price(name, spec, options)
        if price is not None:
            prices[name] = price
        elif options.max_cost is not None and is_paid(spec):
            raise UsageError(
                f"--max-cost needs a price for {name!r}; give --prices FILE with "
                f'[prices."{model}"] input = ... output = ... (USD per million tokens)'
            )
    return prices


def list_price(name: str, spec: str, options: RunOptions) -> Price | None:
    """What a provider's list says of an agent's model; ``None`` where it says nothing, or nothing is paid."""
    found = find_model(spec)
    if found is None or not found[0].paid:
        return None
    provider, model = found
    given = {"base_url": options.base_url, **options.by_agent.get(name, {})}
    price = call_with(provider.price, {key: value for key, value in given.items() if value is not None}, model)
    return None if price is None else dict(price)


def is_paid(spec: str) -> bool:
    """Whether the tokens of an agent may cost money."""
    found = find_model(spec)
    return found is not None and found[0].paid
