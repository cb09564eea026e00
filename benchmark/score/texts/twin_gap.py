"""The twin gap: what a player gets in a game less what it gets in the same game under other texts.

``cells of a scenario and of its twins, seed by seed -> differences -> mean and interval``. States, chances and rewards
are the same in a game and its twins (:mod:`textgames.twins`), so whatever the mean difference is, the text made it: an
opening that was read somewhere, a story that helps, a wording that suits. A player that works its moves out has none.

The interval is over seeds, for the twins that were played: other twins might be read better or worse.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from math import hypot

import numpy as np

from agents.common.intervals import Array, student
from benchmark.runs.plan import num_players
from benchmark.score.document import EstimateView, TwinGapView
from benchmark.score.luck.cells import corrected_returns
from benchmark.score.overall import game_weights, span_of
from benchmark.score.references import References
from benchmark.score.results import Cell, ResultColumns
from benchmark.score.scores import to_view
from textgames.scenarios import Scenario


def twin_gap_rows(results: ResultColumns, references: References) -> list[TwinGapView]:
    """The gap of every agent in every scenario that it played with twins, and over all of these that have a score.

    A gap is in units of the normalised score where both of its ends are known, else in those of the return.
    """
    twins = twins_of(results.scenarios)
    rows = []
    for agent in results.agents:
        own = [row for name in twins if (row := _row(results, references, agent, name, twins[name])) is not None]
        rows += own
        scored = [row for row in own if row["unit"] == "score"]
        if len(scored) > 1:
            rows.append(_over_all(agent, scored, game_weights(results, [row["scenario"] for row in scored])))
    return rows


def twins_of(scenarios: Mapping[str, Scenario]) -> dict[str, list[str]]:
    """``{scenario: its twins}`` of the scenarios that are there with some of their twins."""
    found: dict[str, list[str]] = {}
    for name, scenario in scenarios.items():
        if scenario.twin_number and scenario.plain_name in scenarios:
            found.setdefault(scenario.plain_name, []).append(name)
    return found


def paired_gaps(game: Cell, twins: Sequence[Cell], scenario: Scenario, told: Sequence[Scenario]) -> Array:
    """The return on every seed that was scored in the game and in all of its twins, less the mean of the twins.

    Returns are luck-free where the game offers that. In the order of the seeds, shape (seeds,).
    """
    every = [corrected_returns(game, scenario)]
    every += [corrected_returns(cell, one) for cell, one in zip(twins, told, strict=True)]
    common = reduce(np.intersect1d, [seeds for seeds, _ in every])
    own, *others = [returns[np.isin(seeds, common)] for seeds, returns in every]
    return own - np.mean(others, axis=0) if others else np.empty(0)


def _row(
    results: ResultColumns, references: References, agent: str, name: str, twins: Sequence[str]
) -> TwinGapView | None:
    """One agent in one scenario; ``None`` where it didn't play both it and a twin, or no two seeds of all."""
    played = [twin for twin in twins if (agent, twin) in results.cells]
    if (agent, name) not in results.cells or not played:
        return None
    cells, scenarios = results.cells, results.scenarios
    gaps = paired_gaps(
        cells[agent, name], [cells[agent, one] for one in played], scenarios[name], [scenarios[one] for one in played]
    )
    if len(gaps) < 2:
        return None
    span = span_of(results, references, agent, name) if num_players(scenarios[name]) == 1 else float("nan")
    scored = bool(np.isfinite(span) and span > 0)
    view = to_view(student(gaps / span if scored else gaps))
    assert view is not None  # returns are numbers
    return TwinGapView(
        agent=agent,
        scenario=name,
        twins=len(played),
        pairs=len(gaps),
        gap=view,
        unit="score" if scored else "return",
        above_zero=_above_zero(view),
    )


def _over_all(agent: str, rows: Sequence[TwinGapView], weights: Mapping[str, float]) -> TwinGapView:
    """The mean over scenarios, weighted as the overall score. Their episodes have nothing to do with each other."""
    value = sum(weights[row["scenario"]] * row["gap"]["value"] for row in rows)
    half = hypot(*[weights[row["scenario"]] * _half(row["gap"]) for row in rows])
    view = EstimateView(value=value, low=value - half, high=value + half)
    twins, pairs = max(row["twins"] for row in rows), sum(row["pairs"] for row in rows)
    return TwinGapView(
        agent=agent, scenario="", twins=twins, pairs=pairs, gap=view, unit="score", above_zero=_above_zero(view)
    )


def _half(gap: EstimateView) -> float:
    return 0.0 if gap["low"] is None or gap["high"] is None else (gap["high"] - gap["low"]) / 2


def _above_zero(gap: EstimateView) -> bool:
    """Whether the whole interval is above 0: the player does better under the text that everybody knows."""
    return gap["low"] is not None and gap["low"] > 0
