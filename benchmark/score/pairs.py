"""Pairs of agents over all scenarios, by the resampling that the overall ranks go by, and in the games of both."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil, inf
from typing import Any

import numpy as np

from agents.common.intervals import Difference, is_above
from benchmark.score.comparison import Pair, compared, solo_scenarios
from benchmark.score.differences import LEVEL, MOST_NEEDED, POWER, TIE
from benchmark.score.document import ComparisonView, NeededView, OverallComparisonView
from benchmark.score.overall import Overall, overall_scenarios, span_of
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.score.scores import score_rows, shown_figures


def compare_overall(
    results: ResultColumns, references: References, agents: Sequence[str], scenarios: Sequence[str]
) -> tuple[list[ComparisonView], list[OverallComparisonView]]:
    """Compare every pair of agents in each of ``scenarios`` and over all of them, with one correction for everything.

    Over all they are compared by the results' overall scores, on the seeds that both scored. If two can be compared in
    a single scenario, that is the comparison over all; if no scenario has a scale, there is none.
    """
    kept = replace(results, scenarios={name: results.scenarios[name] for name in scenarios})
    counted = [name for name in overall_scenarios(results) if name in kept.scenarios]
    found: dict[Pair, tuple[Overall, Difference]] = {}
    for a, b in combinations(agents, 2):
        common = _on_common_seeds(kept, a, b)
        names = [name for name in counted or overall_scenarios(common) if name in common.scenarios]
        if len(common.scenarios) > 1 and any(span_of(common, references, a, name) for name in names):
            overall = Overall(common, references, names, partly=True)
            found[a, b] = overall, overall.difference(a, b)
    shown = {(row["agent"], row["scenario"]): shown_figures(row) for row in score_rows(kept, references)}
    p_values = {pair: difference.p for pair, (_, difference) in found.items()}
    rows, corrected = compared(kept, combinations(agents, 2), shown, p_values)
    order = sorted([*p_values.values(), *(row["p_value"] for row in rows)])
    views = []
    for pair in combinations(agents, 2):
        own = [row for row in rows if (row["a"], row["b"]) == pair]
        if pair in found:
            overall, difference = found[pair]
            level = LEVEL / (len(order) - order.index(difference.p))
            view: dict[str, Any] = {**overall.pair_view(*pair, difference, corrected[pair])}
            ahead = f"{pair[0] if difference.estimate.value > 0 else pair[1]} is better"
            told = {row["scenario"]: row["verdict"] for row in own if row["scenario"] in overall.names}
            starts = round(np.mean([row["pairs"] for row in own if row["scenario"] in told]))
            view |= {
                "scenarios": overall.names,
                "unit": "score",
                "decided_by": [name for name, said in told.items() if said == ahead],
                "against": [name for name, said in told.items() if said not in (ahead, TIE)],
                "starts": starts,
            }
            if view["verdict"] == TIE:
                view["starts_needed"] = _starts_needed(difference, starts, level)
        elif len(own) == 1:
            view = _of_row(own[0])
        else:
            continue
        views.append(OverallComparisonView(**view, comparisons=len(order)))  # type: ignore[typeddict-item]
    return rows, views


def _of_row(row: ComparisonView) -> dict[str, Any]:
    """Return the comparison in the only scenario as the one over all."""
    tie, number = row["verdict"] == TIE, row["episodes_needed"]
    low, high = row["episodes_needed_low"], row["episodes_needed_high"]
    return {
        "a": row["a"],
        "b": row["b"],
        "difference": row["difference"]["value"],
        "low": row["difference"]["low"],
        "high": row["difference"]["high"],
        "p": row["p_value"],
        "corrected": row["p_holm"],
        "verdict": row["verdict"],
        "scenarios": [row["scenario"]],
        "unit": "return",
        "decided_by": [] if tie else [row["scenario"]],
        "against": [],
        "starts": row["pairs"],
        **({"starts_needed": number and {"value": number, "low": low, "high": high}} if tie else {}),
    }


def _starts_needed(found: Difference, starts: int, level: float) -> NeededView | None:
    """Return how many starts would tell at this level: the error of a difference falls with the root of the starts."""
    from scipy.special import ndtri

    value, low, high = found.estimate
    reach = (ndtri(1 - level / 2) + ndtri(POWER)) * found.error

    def number(difference: float) -> float:
        return starts * (reach / difference) ** 2 if is_above(abs(difference)) else inf

    if number(value) > MOST_NEEDED or low is None or high is None:
        return None
    least, most = sorted(map(number, (low, high)))
    may_be_0 = low <= 0 <= high or most > MOST_NEEDED
    told = max(starts + 1, ceil(number(value)))
    return NeededView(value=told, low=min(told, max(starts + 1, ceil(least))), high=None if may_be_0 else ceil(most))


def _on_common_seeds(results: ResultColumns, a: str, b: str) -> ResultColumns:
    """Keep two agents in the scenarios for one player in which they scored two common seeds or more, on these alone."""
    scenarios, cells = {}, {}
    for one in solo_scenarios(results):
        own = {agent: results.cells[agent, one.name] for agent in (a, b) if (agent, one.name) in results.cells}
        seeds = [*set[float].intersection(*(set(cell.columns["seed"]) for cell in own.values()))] if own else []
        if len(own) == 2 and len(seeds) > 1:
            scenarios[one.name] = one
            cells.update({(agent, one.name): cell.on_seeds(seeds) for agent, cell in own.items()})
    return replace(results, scenarios=scenarios, cells=cells, agents={agent: results.agents[agent] for agent in (a, b)})
