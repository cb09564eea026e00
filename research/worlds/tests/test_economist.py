"""The economy of a planner and workers: values by hand, equilibria, and planners in their order through ``run``."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmark.runs import RunFolder
from research.worlds.economist import DAYS, RATES, STORIES, Economist, Year
from research.worlds.planners import measured, welfare
from textgames import conformance, find_yardstick, game_of

DATA = Path(__file__).parents[1] / "data"
LIKES, _, TWINS = STORIES
POOR_AND_RICH = ((1, TWINS), (4, LIKES))


@pytest.fixture(scope="module")
def game():
    return game_of("research.worlds:Economist-v0")


@pytest.mark.parametrize("name", ["Economist-v0", "Economy-v0"])
def test_it_keeps_to_the_contract_and_refuses_what_is_no_economy(name, game):
    conformance.check(f"research.worlds:{name}")
    with pytest.raises(ValueError, match=r"num_workers must be .* from 1 to 4, got 9"):
        Economist(num_workers=9)
    with pytest.raises(ValueError, match="not an observation of this economy for player_0: 'Year 1 of 3"):
        game.read_observation(game.observe(Year(POOR_AND_RICH), "player_0").replace("costs much", "is fun"), "player_0")


def test_utilities_are_those_computed_by_hand(game):
    # incomes 2 and 8; of these 25% up to 4 and 50% above are 0.5 and 3, of which each gets back 1.75
    paid = game.utilities(POOR_AND_RICH, (25, 50), np.array([[2, 2]]))[0]
    assert paid == pytest.approx([2 * (3.25**0.5 - 1) - 0.4 * 2, 2 * (6.75**0.5 - 1) - 0.1 * 2])
    # without taxes all work (sqrt(wage) / cost)^(2/3) days, as far as there are so many: 1.8, and 7.4 of 5
    assert game.settled(POOR_AND_RICH, (0, 0)) == (2, 5)
    state, rewards, over = game.transition(Year(POOR_AND_RICH), {"player_0": "tax 0 0"}, None)
    assert rewards["player_0"] == pytest.approx((2 * (2**0.5 - 1) - 0.8 + 2 * (20**0.5 - 1) - 1.25) / 2)
    assert (state.year, state.before, over) == (2, ((0, 0), (2, 5)), False)


def test_no_worker_gains_alone_and_the_planner_gains_most_of_all(game):
    starts = [state.workers for _, state in game.initial_outcomes()]
    for workers, taxes in product(starts, RATES):
        days = game.settled(workers, taxes)
        others = [[*days[:one], own, *days[one + 1 :]] for one in range(2) for own in DAYS]
        paid = game.utilities(workers, taxes, np.array([days, *others]))
        assert max(paid[1:7, 0].max() - paid[0, 0], paid[7:, 1].max() - paid[0, 1]) < 1e-9
    table = np.array([[welfare(game, workers, taxes) for taxes in RATES] for workers in starts])
    best, solved = table.max(axis=1), find_yardstick(game)
    assert [solved.value(Year(workers), 3, "player_0") for workers in starts] == pytest.approx(3 * best)
    found = measured(game)
    assert found == pytest.approx(json.loads((DATA / "economist.json").read_text()))
    assert found["stackelberg"] == pytest.approx(best.mean())
    ranked = sorted(found, key=lambda name: -found[name])
    assert ranked == ["stackelberg", "saez", "random taxes", "free-market", "random play"]


@pytest.mark.slow
def test_planners_play_in_their_order_and_workers_as_players_settle_likewise(textbench, workplace):
    names = ("Stackelberg", "Saez", "FreeMarket")
    agents = [word for name in names for word in ("--agent", f"{name}=research.worlds.planners:{name}")]
    run = ("run", "--episodes", 20, "--json")
    done = textbench(*run, *agents, "--agent", "planner", "--scenario", "research.worlds:Economist-v0", "--out", "a")
    assert done.code == 0, done.err
    told = {row["agent"]: row["mean_return"]["value"] for row in json.loads(done.out)["scores"]}
    assert told["planner"] == told["Stackelberg"] > told["Saez"] > told["FreeMarket"]
    done = textbench(*run, *agents[:2], "--scenario", "research.worlds:Economy-v0", "--out", "b")
    assert done.code == 0, done.err
    steps = [step for record in RunFolder.open(Path("b")).records() for step in record.steps]
    assert all(step.valid for step in steps)
    assert len(steps) == 20 * 3 * 3
