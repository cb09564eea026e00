"""From columns of results to the rows of a leaderboard: estimates, normalised scores, ranks.

``ResultColumns -> [Cell -> ScoreView] -> ranks``; the scores over several scenarios are in ``benchmark.score.overall``.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import Array, Estimate, is_above
from benchmark.runs.plan import num_players
from benchmark.score.comparison import board_family, paired_differences, return_range
from benchmark.score.differences import LEVEL, any_disjoint, paired_p_value
from benchmark.score.document import (
    BlindView,
    EstimateView,
    LuckView,
    OverallView,
    RatingView,
    ReferenceView,
    ScoreView,
)
from benchmark.score.luck import Corrected, LuckValues
from benchmark.score.luck_check import luck_check
from benchmark.score.ratings import bradley_terry
from benchmark.score.references import References, Scale
from benchmark.score.results import LUCK, VARIANCE, Cell, ResultColumns, columns_per_seed, once, without_luck
from textgames.scenarios import Scenario

SCORE, BLIND, REFERENCE, INVALID, RESPONSES, LENGTH, TOKENS, SUCCESS, LUCK_FREE = range(9)
"""The columns of a cell's episode table, see :func:`episode_table`."""


class Place(NamedTuple):
    """A rank from 1, and whether it is shared."""

    rank: int
    tied: bool


def score_rows(results: ResultColumns, references: References | None = None) -> list[ScoreView]:
    """Return a row for each agent and scenario, best agents first; normalised scores need ``references``."""
    rows, prices, family = [], results.prices, board_family(results)
    for name, scenario in results.scenarios.items():

        def told_apart(a: str, b: str, name: str = name) -> bool:
            """Return whether the first of two agents is better on common seeds, after Bonferroni's correction."""
            differences = paired_differences(results, a, b, name)
            return differences.sum() > 0 and family * paired_p_value(differences) < LEVEL

        group = [
            score_row(agent, scenario, cell, references, prices.get(agent))
            for (agent, in_scenario), cell in results.cells.items()
            if in_scenario == name
        ]
        # With unscored or missing episodes it is unknown what an agent lost, so it isn't ranked.
        whole = [row for row in group if row["episodes"] == row["planned"] and not row["unscored"]]
        means = {row["agent"]: best["value"] for row in whole if (best := ranked_by(row)) is not None}
        shown = {row["agent"]: shown_figures(row) for row in group}
        # if a return depends on who else plays, only agents of one run are compared
        together = results.agent_source if num_players(scenario) > 1 else dict.fromkeys(results.agent_source, 0)
        places: dict[str, Place] = {}
        for source in dict.fromkeys(together.values()):
            own = {agent: mean for agent, mean in means.items() if together[agent] == source}
            places |= rank(own, told_apart, lambda a, b, shown=shown: any_disjoint(shown[a], shown[b]))  # type: ignore[misc]
        for row in group:
            row["rank"], row["tied"] = places.get(row["agent"], (None, False))
        rows += sorted(group, key=lambda row: (*best_first(row, ranked_by(row)), row["agent"]))
    return rows


def ranked_by(row: ScoreView) -> EstimateView | None:
    """Return the mean return that an agent's rank goes by: the luck-free one if there is one."""
    return row["luck_free_return"] or row["mean_return"]


def shown_figures(row: ScoreView) -> tuple[EstimateView | None, ...]:
    """Return the figures beside an agent's rank whose intervals mustn't contradict it."""
    return ranked_by(row), row["normalized"]


def score_row(
    agent: str, scenario: Scenario, cell: Cell, references: References | None, price: Mapping[str, Any] | None
) -> ScoreView:
    """Return one agent in one scenario, not yet ranked."""
    found: dict[str, EstimateView | None] = {}
    scale, luck, seats, means = Scale(), None, {}, {}
    game = scenario.game()
    if cell.episodes:
        table, scale = episode_table(cell, scenario, references)
        removed, exact = without_luck(cell, scenario)
        wanted = {
            "mean_return": stats.column(SCORE, possible_returns(scenario, table)),
            "normalized_plain": normalised(scenario, table, scale),
            "invalid_rate": stats.share(INVALID, RESPONSES),
            "length": stats.column(LENGTH, (1, scenario.horizon)),
            "tokens": stats.column(TOKENS),
            "success_rate": stats.column(SUCCESS, (0, 1)),
        }
        if removed is not None and exact:
            ends = removed.ends or possible_returns(scenario, table, LUCK_FREE)
            wanted["luck_free_return"] = stats.column(LUCK_FREE, ends)
            wanted["normalized"] = normalised(scenario, table, scale, removed)
        elif removed is not None:
            wanted["controlled_return"] = stats.column(LUCK_FREE)
        estimates = stats.bootstrap(table, [*wanted.values()], cell.confidence)
        found = dict(zip(wanted, map(to_view, estimates), strict=True))
        found.setdefault("normalized", found["normalized_plain"])
        success = found["success_rate"]
        if not game.success_means and success is not None and not success["value"]:
            found["success_rate"] = None  # the game knows none, and best play has 0, too
        values = LuckValues.of(game)
        if values is not None and removed is not None and removed.beta is not None and cell.luck is not None:
            check = luck_check(cell.luck[:, LUCK], cell.luck[:, VARIANCE])
            if check is not None:
                luck = LuckView(values=values.name, beta=removed.beta, sd_ratio=removed.sd_ratio, **check)
        if len(game.players) > 1:
            places, scores = np.array(cell.columns["seat"]), np.array(cell.columns["score"])
            in_seat = {player: np.where(places == seat, scores, np.nan) for seat, player in enumerate(game.players)}
            seats = _over_seeds(cell, in_seat, game.return_range or ())
        means = _over_seeds(cell, {name: np.array(values) for name, values in cell.metrics.items()})
    blind, reference = scale
    return ScoreView(
        agent=agent,
        scenario=scenario.name,
        protocol=scenario.protocol,
        moves=scenario.moves,
        twin=scenario.twin_number,
        level=scenario.level_number,
        episodes=cell.episodes,
        planned=cell.planned,
        confidence=cell.confidence,
        unscored=cell.unscored,
        errors=dict(cell.errors.most_common()),
        served_by=dict(cell.served_by.most_common()),
        left_out=dict(cell.left_out.most_common()),
        eaten_up=cell.eaten_up,
        rank=None,
        tied=False,
        mean_return=found.get("mean_return"),
        luck_free_return=found.get("luck_free_return"),
        controlled_return=found.get("controlled_return"),
        luck=luck,
        normalized=found.get("normalized"),
        normalized_by="luck_free" if "luck_free_return" in found else "plain",
        normalized_plain=found.get("normalized_plain"),
        above_blind=above_blind(found.get("normalized")) if cell.episodes > 1 else None,
        success_rate=found.get("success_rate"),
        invalid_rate=found.get("invalid_rate"),
        invalid_reasons=dict(cell.reasons.most_common()),
        length=found.get("length"),
        tokens=found.get("tokens"),
        cost=cost(cell.paid_tokens, price),
        seconds=float(np.mean(cell.columns["seconds"])) if cell.episodes else None,
        cpu_seconds=float(np.mean(cell.columns["cpu_seconds"])) if any(cell.columns["cpu_seconds"]) else None,
        seats=seats,
        metrics=means,
        blind=BlindView(value=None, policy="", exact=False)
        if blind is None
        else BlindView(value=float(blind.values.mean()), policy=blind.policy, exact=blind.exact),
        reference=ReferenceView(value=None, kind=None, source="")
        if reference is None
        else ReferenceView(value=float(reference.values.mean()), kind=reference.kind, source=reference.source),
    )


def possible_returns(scenario: Scenario, table: Array, returns: int = SCORE) -> list[float]:
    """Return the game's bounds of returns; without any, the references' if all returns are equal, else those seen."""
    if stated := return_range(scenario):
        return [*stated]
    references = table[:, [BLIND, REFERENCE]]
    return references[np.isfinite(references)].tolist() if np.ptp(table[:, returns]) < 1e-9 else []


def normalised(scenario: Scenario, table: Array, scale: Scale, free: Corrected | None = None) -> stats.Statistic:
    """Return the normalised score of an episode table, of the luck-free returns if they are given."""
    column, ends = (SCORE, None) if free is None else (LUCK_FREE, free.ends)
    return stats.normalised(
        column,
        BLIND,
        REFERENCE,
        possible_returns(scenario, table, column),
        ends=ends,
        played=scale.reference is not None and scale.reference.kind != "optimal",
        blind_error=scale.blind.error if scale.blind is not None else 0.0,
    )


def above_blind(score: EstimateView | None) -> bool | None:
    """Return whether a normalised score is above 0, and its interval too; ``None`` if there is no score."""
    if score is None:
        return None
    return is_above(score["value"] if score["low"] is None else min(score["value"], score["low"]))


@once
def episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[Array, Scale]:
    """Return the columns ``SCORE .. LUCK_FREE`` of a cell, a row for every scored seed, and their references.

    The last column is corrected for luck by exact values, else by a heuristic, else it is the plain return. Without a
    reference its column is NaN, and so is every normalised score.
    """
    columns = cell.table()
    seeds = columns["seed"].astype(int).tolist()
    scale = references.scale(scenario, seeds) if references is not None else Scale()
    unknown = np.full(len(seeds), np.nan)
    free, _ = without_luck(cell, scenario)
    table = [
        columns["score"],
        unknown if scale.blind is None else scale.blind.values,
        unknown if scale.reference is None else scale.reference.values,
        columns["invalid"],
        columns["responses"],
        columns["length"],
        columns["prompt_tokens"] + columns["completion_tokens"],
        columns["success"],
        columns["score"] if free is None else free.values,
    ]
    return np.stack(table, axis=1), scale


def rank(
    values: Mapping[str, float],
    told_apart: Callable[[str, str], bool],
    apart: Callable[[str, str], bool] = lambda a, b: False,
) -> dict[str, Place]:
    """Place agents by value, largest first; those not told apart from the best of their group share its rank.

    Going down, an agent joins a group if it can't be told apart from its best one, and else opens the next. Two agents
    that are ``apart``, whose intervals have no point in common, are never in one group.
    """
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda name: (-values[name], name)):
        if groups and not any(apart(one, name) for one in groups[-1]) and not told_apart(groups[-1][0], name):
            groups[-1].append(name)
        else:
            groups.append([name])
    places: dict[str, Place] = {}
    for group in groups:
        places |= dict.fromkeys(group, Place(1 + len(places), len(group) > 1))
    return places


def rating_rows(results: ResultColumns) -> list[RatingView]:
    """Return the head-to-head ratings of every scenario for several players."""
    return [
        RatingView(
            scenario=scenario,
            **{**rating._asdict(), "rating": rating.rating and to_view(rating.rating)},  # type: ignore[typeddict-item]
            opposed=bool(np.ptp(results.sums.get(scenario, (0.0, 0.0))) < 1e-9),
        )
        for scenario, games in results.games.items()
        for rating in bradley_terry(games)
    ]


def cost(tokens: Sequence[int], price: Mapping[str, Any] | None) -> float | None:
    """Return the US dollars of tokens at a price per million; ``None`` without a price for tokens that were used.

    ``tokens`` are of prompts, of completions, and of the prompts those that the provider had in its cache.
    """
    if not any(tokens):
        return 0.0
    if price is None:
        return None
    prompt, completion, cached = (*tokens, 0)[:3]
    dollars = (prompt - cached) * price["input"] + cached * price.get("cached_input", price["input"])
    return float(dollars + completion * price["output"]) / 1e6


def to_view(estimate: Estimate) -> EstimateView | None:
    """Return the estimate as plain JSON; ``None`` if it isn't a number."""
    if not isfinite(estimate.value):
        return None
    return EstimateView(value=estimate.value, low=estimate.low, high=estimate.high)


def best_first(row: ScoreView | OverallView, estimate: EstimateView | None) -> tuple[bool, float]:
    """Return the key to sort rows by: the ranked ones by their estimates, then the others."""
    return row["rank"] is None, -estimate["value"] if estimate else 0.0


def _over_seeds(cell: Cell, rows: Mapping[str, Array], possible: Sequence[float] = ()) -> dict[str, EstimateView]:
    _, *means = columns_per_seed({"seed": cell.columns["seed"], **rows})
    views = {
        name: to_view(stats.mean_estimate(values, possible, cell.confidence))
        for name, values in zip(rows, means, strict=True)
        if len(values)
    }
    return {name: view for name, view in views.items() if view is not None}
