"""Comparing agents on the same seeds: paired differences, tests, and how many episodes would settle it."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from agents.common.intervals import Array, Estimate
from benchmark.runs.plan import num_players
from benchmark.score import statistics as stats
from benchmark.score.differences import episodes_needed, holm, paired_p_value
from benchmark.score.document import ComparisonView, EstimateView
from benchmark.score.luck.cells import corrected_returns, luck_free
from benchmark.score.luck.estimate import Corrected
from benchmark.score.results import Cell, ResultColumns
from textgames.scenarios import Scenario

BEST = 8  # how many agents of a large board are compared with everyone below them


def compare(results: ResultColumns, agents: Sequence[str]) -> list[ComparisonView]:
    """Every pair of ``agents`` in every scenario for one player, where both scored at least two common seeds.

    Positive differences mean that the first of the pair got the higher returns. Holm's correction is over everything
    that is returned. (Agents that met in a scenario for two players are compared by their ratings.)
    """
    return _compare(results, combinations(agents, 2), None)


def compare_best(results: ResultColumns, agents: Sequence[str]) -> list[ComparisonView]:
    """The comparisons that a page shows of a board whose ``agents`` are given best first.

    Their number grows with the agents, not with their pairs: the best :data:`BEST` with everyone, and every other one
    with the next below it. Holm's correction is over the whole board (:func:`board_family`) all the same.
    """
    ends = [len(agents) if place < BEST else place + 2 for place in range(len(agents))]
    pairs = ((a, b) for place, a in enumerate(agents) for b in agents[place + 1 : ends[place]])
    return _compare(results, pairs, board_family(results))


def board_family(results: ResultColumns) -> int:
    """How many comparisons a board could make: all pairs of agents in every scenario, and overall."""
    played = [sum((agent, scenario) in results.cells for agent in results.agents) for scenario in results.scenarios]
    if len(solo_scenarios(results)) > 1:
        played.append(len(results.agents))
    return sum(count * (count - 1) // 2 for count in played)


def solo_scenarios(results: ResultColumns) -> list[Scenario]:
    """The scenarios for one player: the others are told by ratings."""
    return [scenario for scenario in results.scenarios.values() if num_players(scenario) == 1]


def _compare(results: ResultColumns, pairs: Iterable[tuple[str, str]], family: int | None) -> list[ComparisonView]:
    rows = []
    names = [scenario.name for scenario in solo_scenarios(results)]
    for a, b in pairs:
        for name in names:
            differences = paired_differences(results, a, b, name)
            if len(differences) < 2:
                continue
            cells = [results.cells[agent, name] for agent in (a, b)]
            estimate, is_free = mean_difference(differences, cells, [results.scenarios[name]] * 2)
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
                    episodes_needed=episodes_needed(differences),
                )
            )
    for index, adjusted in holm({index: row["p_value"] for index, row in enumerate(rows)}, family).items():
        rows[index]["p_holm"] = adjusted
    return rows


def mean_difference(differences: Array, cells: Sequence[Cell], scenarios: Sequence[Scenario]) -> tuple[Estimate, bool]:
    """The mean of paired differences of two cells, with its interval, and whether both returns are luck-free.

    Where nobody knows how much one more pair may differ, it may as much as any did, either way: as in the sign-flip
    test, whose verdict on a few differences of one sign the interval then shares.
    """
    free = [luck_free(cell, scenario) for cell, scenario in zip(cells, scenarios, strict=True)]
    stated = return_range(scenarios[0])
    most = stated[1] - stated[0] if stated else float(np.abs(differences).max())
    possible = further_differences(*free) or (-most, most)
    return stats.mean_estimate(differences, possible, max(cell.confidence for cell in cells)), None not in free


def further_differences(first: Corrected | None, second: Corrected | None) -> tuple[float, ...]:
    """The least and the largest difference that one more pair may have; empty where nobody knows it of both returns."""
    if first is None or second is None or first.ends is None or second.ends is None:
        return ()
    return first.ends[0] - second.ends[1], first.ends[1] - second.ends[0]


def return_range(scenario: Scenario) -> tuple[float, ...]:
    """The lowest and the highest return of an episode, as the game states them; empty where it doesn't."""
    return scenario.game().return_range or ()


def paired_differences(results: ResultColumns, a: str, b: str, scenario: str) -> Array:
    """``return_a - return_b`` on every seed that both scored, in the order of seeds; luck-free where there are such."""
    cells = [results.cells[agent, scenario] for agent in (a, b) if (agent, scenario) in results.cells]
    if len(cells) < 2:
        return np.empty(0)
    return cell_differences(cells, [results.scenarios[scenario]] * 2)


def cell_differences(cells: Sequence[Cell], scenarios: Sequence[Scenario]) -> Array:
    """The differences between two cells, each of which has a scenario of its own."""
    first, second = (corrected_returns(cell, scenario) for cell, scenario in zip(cells, scenarios, strict=True))
    if np.array_equal(first[0], second[0]):
        return first[1] - second[1]
    _, rows_a, rows_b = np.intersect1d(first[0], second[0], return_indices=True)
    return first[1][rows_a] - second[1][rows_b]
