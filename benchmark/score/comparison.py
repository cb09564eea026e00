"""Comparing agents on the same seeds: paired differences, tests, and how many episodes would settle it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import Array, Estimate
from benchmark.runs.plan import Plan, num_players
from benchmark.score.differences import (
    LEVEL,
    TIE,
    any_disjoint,
    episodes_needed,
    fewest_pairs,
    holm,
    paired_p_value,
    verdict,
)
from benchmark.score.document import ComparisonView, EstimateView
from benchmark.score.luck import Corrected
from benchmark.score.results import Cell, ResultColumns, corrected_returns, luck_free
from textgames.scenarios import Scenario

BEST = 8  # how many agents of a large board are compared with everyone below them

Scores = Mapping[tuple[str, str], Sequence[EstimateView | None]]
"""``{(agent, scenario): the figures beside its rank}``, see :func:`benchmark.score.scores.shown_figures`."""

Pair = tuple[str, str]


def compare_best(results: ResultColumns, agents: Sequence[str], scores: Scores) -> list[ComparisonView]:
    """Return the comparisons that a page shows of a board whose ``agents`` are given best first.

    They are the best :data:`BEST` with everyone, and every other one with the next below it; Holm's correction is over
    the whole board all the same.
    """
    ends = [len(agents) if place < BEST else place + 2 for place in range(len(agents))]
    pairs = ((a, b) for place, a in enumerate(agents) for b in agents[place + 1 : ends[place]])
    return compared(results, pairs, scores, family=board_family(results))[0]


def board_family(results: ResultColumns) -> int:
    """Return how many comparisons a board could make: all pairs of agents in every scenario, and overall."""
    played = [sum((agent, scenario) in results.cells for agent in results.agents) for scenario in results.scenarios]
    return _family(played, len(solo_scenarios(results)), len(results.agents))


def _family(played: Sequence[int], solo: int, agents: int) -> int:
    return sum(count * (count - 1) // 2 for count in (*played, *([agents] if solo > 1 else [])))


def too_few_starts(plan: Plan) -> str:
    """Report that no paired test, whose least p-value is ``2 / 2^n``, tells two agents of a plan apart; else empty."""
    places = {name: (one.name, *one.rules) for name, one in plan.scenarios.items()}  # equal for samples of a scenario
    players: dict[tuple[str, ...], set[str]] = {place: set() for place in places.values()}
    for each in plan.seeds:
        players[places[each.scenario]].update(each.agents)
    solo = {places[name] for name, scenario in plan.scenarios.items() if num_players(scenario) == 1}
    family = _family([len(agents) for agents in players.values()], len(solo), len(plan.agents))
    starts = max((len(seeds) for each, seeds in plan.seeds.items() if places[each.scenario] in solo), default=0)
    if not starts or max(len(players[one]) for one in solo) < 2 or starts >= (enough := fewest_pairs(LEVEL / family)):
        return ""
    least = 2.0 ** (1 - starts)
    corrected = f", {min(1.0, family * least):.2g} after correction for {family} comparisons" if family > 1 else ""
    return (
        f"no paired test of one scenario can tell two agents apart with {starts} episodes: its smallest p-value is "
        f"{least:.2g}{corrected}; it takes --episodes {enough} at least"
    )


def solo_scenarios(results: ResultColumns) -> list[Scenario]:
    """Return the scenarios for one player: the others have ratings."""
    return [scenario for scenario in results.scenarios.values() if num_players(scenario) == 1]


def compared(
    results: ResultColumns,
    pairs: Iterable[Pair],
    scores: Scores = MappingProxyType({}),
    overall: Mapping[Pair, float] = MappingProxyType({}),
    family: int | None = None,
) -> tuple[list[ComparisonView], dict[Pair, float]]:
    """Compare pairs of agents in every scenario for one player, with Holm's correction over all of it.

    Two agents the intervals of whose ``scores`` have no point in common are told apart by that. ``overall`` are further
    p-values that are corrected with these and returned, ``family`` is how many comparisons there could be.
    """
    rows, samples = [], []
    names = [scenario.name for scenario in solo_scenarios(results)]
    for (a, b), name in ((pair, name) for pair in pairs for name in names):
        differences = paired_differences(results, a, b, name)
        if len(differences) < 2:
            continue
        cells = [results.cells[agent, name] for agent in (a, b)]
        estimate, is_free = mean_difference(differences, cells, [results.scenarios[name]] * 2)
        samples.append(differences)
        rows.append(
            ComparisonView(
                scenario=name,
                a=a,
                b=b,
                pairs=len(differences),
                difference=EstimateView(value=estimate.value, low=estimate.low, high=estimate.high),
                luck_free=is_free,
                p_value=paired_p_value(differences),
                p_holm=1.0,
                verdict=TIE,
                episodes_needed=None,
                episodes_needed_low=None,
                episodes_needed_high=None,
            )
        )
    p_values: dict[int | Pair, float] = {index: row["p_value"] for index, row in enumerate(rows)}
    p_values |= {pair: overall[pair] for pair in overall}
    adjusted = holm(p_values, family)
    family = max(family or 0, len(adjusted))
    for place, key in enumerate(sorted(adjusted, key=p_values.__getitem__)):
        if isinstance(key, int):
            row = rows[key]
            apart = any_disjoint(*(scores.get((agent, row["scenario"]), ()) for agent in (row["a"], row["b"])))
            row["p_holm"] = adjusted[key]
            row["verdict"] = verdict(row["a"], row["b"], row["difference"]["value"], adjusted[key], apart)
            needed = episodes_needed(samples[key], LEVEL / (family - place))
            if needed is not None:
                row["episodes_needed"], row["episodes_needed_low"], row["episodes_needed_high"] = needed
    return rows, {key: adjusted[key] for key in overall}


def mean_difference(differences: Array, cells: Sequence[Cell], scenarios: Sequence[Scenario]) -> tuple[Estimate, bool]:
    """Return the mean of paired differences of two cells, with its interval, and whether both returns are luck-free.

    If it is unknown how much one more pair may differ, it may as much as any did, either way: as in the sign-flip
    test, whose verdict on a few differences of one sign the interval then shares.
    """
    free = [luck_free(cell, scenario) for cell, scenario in zip(cells, scenarios, strict=True)]
    stated = return_range(scenarios[0])
    most = stated[1] - stated[0] if stated else float(np.abs(differences).max())
    possible = further_differences(*free) or (-most, most)
    return stats.mean_estimate(differences, possible, max(cell.confidence for cell in cells)), None not in free


def further_differences(first: Corrected | None, second: Corrected | None) -> tuple[float, ...]:
    """Return the least and the largest difference of one more pair; empty if either return has no known ends."""
    if first is None or second is None or first.ends is None or second.ends is None:
        return ()
    return first.ends[0] - second.ends[1], first.ends[1] - second.ends[0]


def return_range(scenario: Scenario) -> tuple[float, ...]:
    """Return the lowest and the highest return of an episode, as the game states them; empty if it doesn't."""
    return scenario.game().return_range or ()


def paired_differences(results: ResultColumns, a: str, b: str, scenario: str) -> Array:
    """Return ``return_a - return_b`` by seed, in the order of the common seeds; luck-free if both are."""
    cells = [results.cells[agent, scenario] for agent in (a, b) if (agent, scenario) in results.cells]
    if len(cells) < 2:
        return np.empty(0)
    return cell_differences(cells, [results.scenarios[scenario]] * 2)


def cell_differences(
    cells: Sequence[Cell],
    scenarios: Sequence[Scenario],
    returns_of: Callable[[Cell, Scenario], tuple[Array, Array]] = corrected_returns,
) -> Array:
    """Return the differences between two cells, each of which has a scenario of its own."""
    first, second = (returns_of(cell, scenario) for cell, scenario in zip(cells, scenarios, strict=True))
    if np.array_equal(first[0], second[0]):
        return first[1] - second[1]
    _, rows_a, rows_b = np.intersect1d(first[0], second[0], return_indices=True)
    return first[1][rows_a] - second[1][rows_b]
