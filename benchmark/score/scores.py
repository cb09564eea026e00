"""From columns of results to the rows of a leaderboard: estimates, normalised scores, ranks.

``Results -> [Cell -> ScoreView] -> ranks -> overall``.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from benchmark.score import statistics as stats
from benchmark.score.document import Estimate, OverallView, RatingView, ReferenceView, ScoreView
from benchmark.score.ratings import bradley_terry
from benchmark.score.references import References, Scale
from benchmark.score.results import Cell, Results
from textgames.scenarios import Scenario

SCORE, RANDOM, OPTIMAL, INVALID, RESPONSES, LENGTH, TOKENS, SUCCESS = range(8)
"""The columns of a cell's episode table, see :func:`episode_table`."""

NO_SCALE = Scale(None, "", None, "")


def score_rows(results: Results, references: References | None = None) -> list[ScoreView]:
    """One row per agent and scenario with planned episodes; scenarios in order, best agents first.

    Args:
        results: what was played.
        references: for the normalised scores; without it there are none.
    """
    rows = []
    for name, scenario in results.scenarios.items():
        group = [
            score_row(agent, scenario, cell, references, results.prices.get(agent))
            for (agent, in_scenario), cell in results.cells.items()
            if in_scenario == name
        ]
        rank_rows(group)
        rows += sorted(group, key=_best_first)
    return rows


def score_row(
    agent: str, scenario: Scenario, cell: Cell, references: References | None, price: Mapping[str, float] | None
) -> ScoreView:
    """One agent in one scenario, not yet ranked."""
    row = ScoreView(
        agent=agent,
        scenario=scenario.name,
        episodes=cell.episodes,
        planned=cell.planned,
        unscored=cell.unscored,
        errors=dict(cell.errors.most_common()),
        rank=None,
        mean_return=None,
        normalized=None,
        success_rate=None,
        invalid_rate=None,
        invalid_reasons=dict(cell.reasons.most_common()),
        length=None,
        tokens=None,
        cost=cost(cell.paid_tokens, price),
        seconds=None,
        reference=ReferenceView(random=None, random_source="", optimal=None, optimal_source=""),
    )
    if not cell.episodes:
        return row
    table, scale = episode_table(cell, scenario, references)
    mean, normal, invalid, length, tokens, success = stats.bootstrap(
        table,
        [
            stats.column(SCORE),
            stats.normalised(SCORE, RANDOM, OPTIMAL),
            stats.ratio(INVALID, RESPONSES),
            stats.column(LENGTH),
            stats.column(TOKENS),
            stats.column(SUCCESS),
        ],
    )
    row["mean_return"], row["normalized"] = to_view(mean), to_view(normal)
    row["invalid_rate"], row["length"], row["tokens"] = to_view(invalid), to_view(length), to_view(tokens)
    row["success_rate"] = to_view(stats.success_estimate(table[:, SUCCESS], success))
    row["seconds"] = float(np.mean(cell.columns["seconds"]))
    row["reference"] = ReferenceView(
        random=_mean(scale.random),
        random_source=scale.random_source,
        optimal=_mean(scale.optimal),
        optimal_source=scale.optimal_source,
    )
    return row


def episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[stats.Array, Scale]:
    """The columns ``SCORE .. SUCCESS`` of a cell's scored episodes in the order of seeds, and the references in them.

    Where there is no reference, its column is NaN, and so is every normalised score.
    """
    columns = cell.table()
    seeds = columns["seed"].astype(int).tolist()
    scale = references.scale(scenario, seeds) if references is not None else NO_SCALE
    unknown = np.full(len(seeds), np.nan)
    table = np.stack(
        [
            columns["score"],
            unknown if scale.random is None else scale.random,
            unknown if scale.optimal is None else scale.optimal,
            columns["invalid"],
            columns["responses"],
            columns["length"],
            columns["prompt_tokens"] + columns["completion_tokens"],
            columns["success"],
        ],
        axis=1,
    )
    return table, scale


def rank_rows(rows: Sequence[ScoreView]) -> None:
    """Rank the rows of one scenario by mean return, equal means sharing a place.

    A row with unscored or missing episodes isn't ranked: what it lost nobody knows.
    """
    ranked = {
        row["agent"]: row["mean_return"]["value"]
        for row in rows
        if row["mean_return"] is not None and row["episodes"] == row["planned"] and not row["unscored"]
    }
    for row in rows:
        if row["agent"] in ranked:
            row["rank"] = 1 + sum(value > ranked[row["agent"]] + 1e-12 for value in ranked.values())


def overall_rows(results: Results, references: References) -> list[OverallView]:
    """Every agent's mean normalised score over the scenarios for one player, best first, unranked ones last."""
    rows = [_overall_row(agent, results, references) for agent in results.agents]
    values = [row["normalized"]["value"] for row in rows if row["normalized"] is not None]
    for row in rows:
        if row["normalized"] is not None:
            own = row["normalized"]["value"]
            row["rank"] = 1 + sum(value > own + 1e-12 for value in values)
    return sorted(rows, key=lambda row: (row["rank"] is None, row["rank"] or 0, -row["scenarios"], row["agent"]))


def _overall_row(agent: str, results: Results, references: References) -> OverallView:
    tables = []
    singles = [s for s in results.scenarios.values() if not _is_game_between_agents(results, s)]
    for scenario in singles:
        cell = results.cells.get((agent, scenario.name))
        if cell is not None and cell.complete:
            tables.append(episode_table(cell, scenario, references)[0])
    normalized = None
    if tables and len(tables) == len(singles):
        statistic = stats.normalised(SCORE, RANDOM, OPTIMAL)
        normalized = to_view(stats.mean_of_estimates(tables, [statistic] * len(tables)))
    return OverallView(agent=agent, rank=None, normalized=normalized, scenarios=len(tables))


def _is_game_between_agents(results: Results, scenario: Scenario) -> bool:
    from benchmark.runs.plan import num_players

    return num_players(scenario) > 1


def rating_rows(results: Results) -> list[RatingView]:
    """The head-to-head ratings of every scenario for two players."""
    return [
        RatingView(
            scenario=scenario,
            agent=rating.agent,
            rating=Estimate(value=rating.rating.value, low=rating.rating.low, high=rating.rating.high),
            games=rating.games,
            wins=rating.wins,
            losses=rating.losses,
            draws=rating.draws,
        )
        for scenario, games in results.games.items()
        for rating in bradley_terry(games)
    ]


def cost(tokens: Sequence[int], price: Mapping[str, float] | None) -> float | None:
    """US dollars of prompt and completion tokens at a price per million; ``None`` without a price.

    Players without a model use no tokens and cost nothing.
    """
    if not any(tokens):
        return 0.0
    if price is None:
        return None
    return (tokens[0] * price["input"] + tokens[1] * price["output"]) / 1e6


def to_view(estimate: stats.Estimate) -> Estimate | None:
    """The estimate as plain JSON; ``None`` when it isn't a number."""
    if not isfinite(estimate.value):
        return None
    return Estimate(value=estimate.value, low=estimate.low, high=estimate.high)


def _mean(values: stats.Array | None) -> float | None:
    return None if values is None else float(values.mean())


def _best_first(row: ScoreView) -> tuple[bool, int, str]:
    return row["rank"] is None, row["rank"] or 0, row["agent"]
