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
from benchmark.score.results import LUCK, VARIANCE, Cell, ResultColumns, columns_per_seed, controlled, luck_free
from textgames.scenarios import Scenario

SCORE, BLIND, REFERENCE, INVALID, RESPONSES, LENGTH, TOKENS, SUCCESS, LUCK_FREE = range(9)
"""The columns of a cell's episode table, see :func:`episode_table`."""

NO_SCALE = Scale()


class Place(NamedTuple):
    """A rank from 1, and whether it is shared."""

    rank: int
    tied: bool


def score_rows(results: ResultColumns, references: References | None = None) -> list[ScoreView]:
    """Return one row per agent and scenario with planned episodes; scenarios in order, best agents first.

    Without ``references`` there are no normalised scores.
    """
    rows, prices = [], results.prices
    for name, scenario in results.scenarios.items():
        group = [
            score_row(agent, scenario, cell, references, prices.get(agent))
            for (agent, in_scenario), cell in results.cells.items()
            if in_scenario == name
        ]
        # With unscored or missing episodes it is unknown what an agent lost, so it isn't ranked.
        whole = [row for row in group if row["episodes"] == row["planned"] and not row["unscored"]]
        means = {row["agent"]: best["value"] for row in whole if (best := ranked_by(row)) is not None}
        shown = {row["agent"]: shown_figures(row) for row in group}
        # where a return depends on who else plays, only agents of one run are compared
        together = results.agent_source if num_players(scenario) > 1 else dict.fromkeys(results.agent_source, 0)
        told_apart = board_test(results, name)
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
    row = ScoreView(
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
        mean_return=None,
        luck_free_return=None,
        controlled_return=None,
        luck=None,
        normalized=None,
        normalized_by="plain",
        normalized_plain=None,
        above_blind=None,
        success_rate=None,
        invalid_rate=None,
        invalid_reasons=dict(cell.reasons.most_common()),
        length=None,
        tokens=None,
        cost=cost(cell.paid_tokens, price),
        seconds=None,
        seats={},
        metrics={},
        blind=BlindView(value=None, policy="", exact=False),
        reference=ReferenceView(value=None, kind=None, source=""),
    )
    if not cell.episodes:
        return row
    table, scale = episode_table(cell, scenario, references)
    free, guessed = luck_free(cell, scenario), controlled(cell, scenario)
    wanted = [
        stats.column(SCORE, possible_returns(scenario, table)),
        normalised(scenario, table, scale),
        stats.share(INVALID, RESPONSES),
        stats.column(LENGTH, (1, scenario.horizon)),
        stats.column(TOKENS),
        stats.column(SUCCESS, (0, 1)),
    ]
    if free is not None:
        ends = free.ends or possible_returns(scenario, table, LUCK_FREE)
        wanted += [stats.column(LUCK_FREE, ends), normalised(scenario, table, scale, free)]
    elif guessed is not None:
        wanted += [stats.column(LUCK_FREE)]
    mean, plain, invalid, length, tokens, success, *without_luck = stats.bootstrap(table, wanted, cell.confidence)
    row["mean_return"], row["normalized_plain"] = to_view(mean), to_view(plain)
    row["normalized"] = row["normalized_plain"]
    if free is not None:
        row["luck_free_return"], row["normalized"] = map(to_view, without_luck)
        row["normalized_by"], row["luck"] = "luck_free", luck_view(cell, scenario, free)
    elif guessed is not None:
        row["controlled_return"], row["luck"] = to_view(without_luck[0]), luck_view(cell, scenario, guessed)
    row["invalid_rate"], row["length"] = to_view(invalid), to_view(length)
    row["tokens"] = to_view(tokens)
    if scenario.game().success_means or success.value:  # else the game knows none, and best play has 0, too
        row["success_rate"] = to_view(success)
    row["seconds"] = float(np.mean(cell.columns["seconds"]))
    row["seats"] = views(seat_means(cell, scenario))
    row["metrics"] = views(metric_means(cell))
    row["above_blind"] = above_blind(row["normalized"]) if cell.episodes > 1 else None
    if scale.blind is not None:
        row["blind"] = BlindView(
            value=float(scale.blind.values.mean()), policy=scale.blind.policy, exact=scale.blind.exact
        )
    if scale.reference is not None:
        value, kind, source = float(scale.reference.values.mean()), scale.reference.kind, scale.reference.source
        row["reference"] = ReferenceView(value=value, kind=kind, source=source)
    return row


def possible_returns(scenario: Scenario, table: Array, returns: int = SCORE) -> list[float]:
    """Returns that an episode table needn't show and that are possible: the bounds that the game states.

    Where it states none, the sample has to do; only if all its returns are equal, those of the references stand in.
    """
    if stated := return_range(scenario):
        return [*stated]
    references = table[:, [BLIND, REFERENCE]]
    return references[np.isfinite(references)].tolist() if np.ptp(table[:, returns]) < 1e-9 else []


def luck_view(cell: Cell, scenario: Scenario, free: Corrected) -> LuckView | None:
    """Return how luck was taken out; ``None`` in a game without chance."""
    values = LuckValues.of(scenario.game())
    check = None if cell.luck is None else luck_check(cell.luck[:, LUCK], cell.luck[:, VARIANCE])
    if values is None or check is None or free.beta is None:
        return None
    return LuckView(values=values.name, beta=free.beta, sd_ratio=free.sd_ratio, z=check["z"], p=check["p"])


def normalised(scenario: Scenario, table: Array, scale: Scale, free: Corrected | None = None) -> stats.Statistic:
    """Return the normalised score of an episode table, of the luck-free returns if they are given."""
    about: dict[str, Any] = {
        "played": scale.reference is not None and scale.reference.kind != "optimal",
        "blind_error": scale.blind.error if scale.blind is not None else 0.0,
    }
    column, ends = (SCORE, None) if free is None else (LUCK_FREE, free.ends)
    possible = possible_returns(scenario, table, column)
    return stats.normalised(column, BLIND, REFERENCE, possible, ends=ends, **about)


def above_blind(score: EstimateView | None) -> bool | None:
    """Return whether a normalised score is above 0, and its interval too; ``None`` if there is no score."""
    if score is None:
        return None
    return is_above(score["value"] if score["low"] is None else min(score["value"], score["low"]))


def episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[Array, Scale]:
    """Return the columns ``SCORE .. LUCK_FREE`` of a cell, a row for every scored seed, and their references.

    The last one is freed from luck by exact values, else by a heuristic, else it is the plain return.
    If there is no reference, its column is NaN, and so is every normalised score.
    """
    known = cell.memo.get("episodes")  # the scores of a scenario, of its suites and over all need the same one
    if known is None or known[0] is not references:
        known = cell.memo["episodes"] = (references, _episode_table(cell, scenario, references))
    found: tuple[Array, Scale] = known[1]
    return found


def _episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[Array, Scale]:
    columns = cell.table()
    seeds = columns["seed"].astype(int).tolist()
    scale = references.scale(scenario, seeds) if references is not None else NO_SCALE
    unknown = np.full(len(seeds), np.nan)
    free = controlled(cell, scenario) if luck_free(cell, scenario) is None else luck_free(cell, scenario)
    table = np.stack(
        [
            columns["score"],
            unknown if scale.blind is None else scale.blind.values,
            unknown if scale.reference is None else scale.reference.values,
            columns["invalid"],
            columns["responses"],
            columns["length"],
            columns["prompt_tokens"] + columns["completion_tokens"],
            columns["success"],
            columns["score"] if free is None else free.values,
        ],
        axis=1,
    )
    return table, scale


def rank(
    values: Mapping[str, float],
    told_apart: Callable[[str, str], bool],
    apart: Callable[[str, str], bool] = lambda a, b: False,
) -> dict[str, Place]:
    """Places by value, largest first. Agents that can't be told apart from the best of their group share its rank.

    The best agent opens a group; going down, everyone joins it who can't be told apart from that agent; the first who
    can be opens the next group, and so on. So there are fewer tests than agents. Two agents that are ``apart``, whose
    intervals have no point in common, are never in one group, whatever a test says that is corrected for a large board.
    """
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda name: (-values[name], name)):
        if groups and not any(apart(one, name) for one in groups[-1]) and not told_apart(groups[-1][0], name):
            groups[-1].append(name)
        else:
            groups.append([name])
    places: dict[str, Place] = {}
    for group in groups:
        place = Place(1 + len(places), len(group) > 1)
        places |= dict.fromkeys(group, place)
    return places


def board_test(results: ResultColumns, scenario: str) -> Callable[[str, str], bool]:
    """Return whether the first of two agents is the better one on their common seeds of a scenario.

    The test is the paired one, corrected by Bonferroni for everything that the board could compare: which tests are
    made depends on what the ones before showed. Who is above by other seeds than the common ones is told apart by none.
    """
    family = board_family(results)

    def told_apart(a: str, b: str) -> bool:
        differences = paired_differences(results, a, b, scenario)
        return differences.sum() > 0 and family * paired_p_value(differences) < LEVEL

    return told_apart


def rating_rows(results: ResultColumns) -> list[RatingView]:
    """Return the head-to-head ratings of every scenario for several players."""
    return [
        RatingView(
            scenario=scenario,
            agent=rating.agent,
            group=rating.group,
            rating=None if rating.rating is None else to_view(rating.rating),
            in_cycle=rating.in_cycle,
            games=rating.games,
            wins=rating.wins,
            losses=rating.losses,
            draws=rating.draws,
            opposed=bool(np.ptp(results.sums.get(scenario, (0.0, 0.0))) < 1e-9),
        )
        for scenario, games in results.games.items()
        for rating in bradley_terry(games)
    ]


def cost(tokens: Sequence[int], price: Mapping[str, Any] | None) -> float | None:
    """US dollars of tokens at a price per million; ``None`` without a price.

    ``tokens`` are those of prompts, of completions, and of the prompts those that the provider had in its cache.
    Players without a model use no tokens and cost nothing.
    """
    if not any(tokens):
        return 0.0
    if price is None:
        return None
    prompt, completion, cached = (*tokens, 0)[:3]
    dollars = (prompt - cached) * price["input"] + cached * price.get("cached_input", price["input"])
    return float(dollars + completion * price["output"]) / 1e6


def to_view(estimate: Estimate) -> EstimateView | None:
    """Return the estimate as plain JSON; ``None`` when it isn't a number."""
    if not isfinite(estimate.value):
        return None
    return EstimateView(value=estimate.value, low=estimate.low, high=estimate.high)


def views(estimates: Mapping[str, Estimate]) -> dict[str, EstimateView]:
    """Return those estimates that are numbers, as plain JSON."""
    return {name: view for name, one in estimates.items() if (view := to_view(one)) is not None}


def best_first(row: ScoreView | OverallView, estimate: EstimateView | None) -> tuple[bool, float]:
    """To sort rows by: the ranked ones by their estimates, then the others."""
    return row["rank"] is None, -estimate["value"] if estimate else 0.0


def seat_means(cell: Cell, scenario: Scenario) -> dict[str, Estimate]:
    """Return ``{player: the agent's mean return in this seat}`` in a game for several, of the seats that it had."""
    game = scenario.game()
    if len(game.players) == 1:
        return {}
    seats, scores = np.array(cell.columns["seat"]), np.array(cell.columns["score"])
    in_seat = {player: np.where(seats == seat, scores, np.nan) for seat, player in enumerate(game.players)}
    return _over_seeds(cell, in_seat, game.return_range or ())


def metric_means(cell: Cell) -> dict[str, Estimate]:
    """Return ``{name: its mean over the seeds that have it}`` of every metric."""
    return _over_seeds(cell, {name: np.array(values) for name, values in cell.metrics.items()})


def _over_seeds(cell: Cell, rows: dict[str, Array], possible: Sequence[float] = ()) -> dict[str, Estimate]:
    _, *means = columns_per_seed({"seed": cell.columns["seed"], **rows})
    return {
        name: stats.mean_estimate(values, possible, cell.confidence)
        for name, values in zip(rows, means, strict=True)
        if len(values)
    }
