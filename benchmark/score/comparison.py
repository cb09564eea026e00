"""Comparing agents on the same seeds: paired differences, tests, and how many episodes would settle it."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from benchmark.runs.plan import num_players
from benchmark.score import statistics as stats
from benchmark.score.document import ComparisonView, Estimate
from benchmark.score.results import Results


def compare(results: Results, agents: Sequence[str]) -> list[ComparisonView]:
    """Every pair of ``agents`` in every scenario for one player, where both scored at least two common seeds.

    Positive differences mean that the first of the pair got the higher returns. Holm's correction is over the
    scenarios of each pair. (Agents that met in a scenario for two players are compared by their ratings.)
    """
    rows: list[ComparisonView] = []
    for a, b in combinations(agents, 2):
        rows += compare_pair(results, a, b)
    return rows


def compare_pair(results: Results, a: str, b: str) -> list[ComparisonView]:
    """Two agents in every scenario for one player that both played."""
    rows = []
    for scenario in results.scenarios.values():
        if num_players(scenario) > 1:
            continue
        differences = paired_differences(results, a, b, scenario.name)
        if len(differences) < 2:
            continue
        estimate = stats.mean_estimate(differences)
        rows.append(
            ComparisonView(
                scenario=scenario.name,
                a=a,
                b=b,
                pairs=len(differences),
                difference=Estimate(value=estimate.value, low=estimate.low, high=estimate.high),
                p_value=stats.paired_p_value(differences),
                p_holm=1.0,
                episodes_needed=stats.episodes_needed(differences),
            )
        )
    for row, adjusted in zip(rows, stats.holm([row["p_value"] for row in rows]), strict=True):
        row["p_holm"] = adjusted
    return rows


def paired_differences(results: Results, a: str, b: str, scenario: str) -> stats.Array:
    """``return_a - return_b`` on every seed that both scored, in the order of seeds."""
    cells = [results.cells.get((agent, scenario)) for agent in (a, b)]
    if cells[0] is None or cells[1] is None:
        return np.empty(0)
    first, second = cells[0].table(), cells[1].table()
    _, rows_a, rows_b = np.intersect1d(first["seed"], second["seed"], return_indices=True)
    return first["score"][rows_a] - second["score"][rows_b]
