"""What an agent's tokens cost: of one model, and of several inside of a wrapper."""

import pytest

from benchmark.errors import UsageError
from benchmark.play.cost.prices import agent_prices
from benchmark.play.options import RunOptions

pytestmark = pytest.mark.usefixtures("added_players")
ONE, OTHER = {"input": 1.0, "output": 1.0}, {"input": 1000.0, "output": 1000.0}


def price_of(spec, table, before=None, max_cost=1.0):
    """The price of an agent whose card has the first player's model, as those of wrappers have it."""
    with open("prices.toml", "w") as file:
        for name, price in table.items():
            file.write(f'[prices."{name}"]\ninput = {price["input"]}\noutput = {price["output"]}\n')
    options = RunOptions(agents=(f"r={spec}",), max_cost=max_cost, prices="prices.toml" if table else None)
    model = None if "planner," in spec else "m"
    card = {"name": "r", "spec": spec, "settings": {"model": model}}
    return agent_prices([card], options, {} if before is None else {"r": before}).get("r")


@pytest.mark.parametrize(
    ("spec", "table", "price"),
    [
        ("openai:m", {"m": ONE, "m2": OTHER}, ONE),
        ("either(openai:m, openai:m2)", {"m": ONE, "m2": ONE}, ONE),
        ("either(openai:m, openai:m2)", {"m": ONE, "m2": OTHER, "r": OTHER}, OTHER),
        ("either(planner, openai:m2)", {"m2": OTHER}, OTHER),
        ("either(planner, many(openai:m2))", {"openai:m2": OTHER}, OTHER),
    ],
)
def test_a_wrapper_has_the_price_of_all_that_are_paid_inside(workplace, spec, table, price):
    assert price_of(spec, table) == price
    assert price_of(spec, table, before={"input": 5.0, "output": 5.0}) == price
    assert price_of(spec, {}, before=price) == price  # a resume without the file


def test_a_wrapper_whose_models_have_several_prices_has_none(workplace):
    spec, table = "either(openai:m, openai:m2)", {"m": ONE, "m2": OTHER}
    for before in (None, ONE):
        assert price_of(spec, table, before, max_cost=None) is None
        with pytest.raises(
            UsageError, match=r"'r', one for m, m2: their tokens are counted together.*\[prices\.\"r\"\]"
        ):
            price_of(spec, table, before)
    with pytest.raises(UsageError, match=r"price for 'r'; give --prices FILE with \[prices\.\"m2\"\]"):
        price_of("either(planner, openai:m2)", {})
