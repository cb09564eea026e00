"""From columns of results to the rows of a leaderboard: estimates, normalised scores, ranks.

``ResultColumns -> [Cell -> ScoreView] -> ranks -> overall``.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from agents.protocol import STANDARD
from benchmark.runs.plan import PAPER_SCENARIOS
from benchmark.score import statistics as stats
from benchmark.score.comparison import board_family, paired_differences, return_range, solo_scenarios
from benchmark.score.document import EstimateView, LuckView, OverallView, RatingView, ReferenceView, ScoreView
from benchmark.score.luck.cells import LUCK, VARIANCE, controlled, luck_free
from benchmark.score.luck.check import luck_check
from benchmark.score.luck.estimate import Corrected
from benchmark.score.luck.terms import LuckValues
from benchmark.score.ratings import bradley_terry
from benchmark.score.references import References, Scale
from benchmark.score.results import Cell, ResultColumns
from benchmark.score.seats import metric_means, seat_means
from textgames.scenarios import Scenario

SCORE, RANDOM, OPTIMAL, INVALID, RESPONSES, LENGTH, TOKENS, SUCCESS, LUCK_FREE = range(9)
"""The columns of a cell's episode table, see :func:`episode_table`."""

NO_SCALE = Scale(None, "", None, "")

LEVEL = 0.05  # agents whose difference has at least this p-value, corrected for the whole board, can't be told apart


class Place(NamedTuple):
    """A rank from 1, and whether it is shared."""

    rank: int
    tied: bool


def score_rows(results: ResultColumns, references: References | None = None) -> list[ScoreView]:
    """One row per agent and scenario with planned episodes; scenarios in order, best agents first.

    Without ``references`` there are no normalised scores.
    """
    rows, prices = [], results.prices
    for name, scenario in results.scenarios.items():
        group = [
            score_row(agent, scenario, cell, references, prices.get(agent))
            for (agent, in_scenario), cell in results.cells.items()
            if in_scenario == name
        ]
        # With unscored or missing episodes nobody knows what an agent lost, so it isn't ranked.
        whole = [row for row in group if row["episodes"] == row["planned"] and not row["unscored"]]
        means = {row["agent"]: best["value"] for row in whole if (best := ranked_by(row)) is not None}
        places = rank(means, board_test(results, {name: 1.0}))
        for row in group:
            row["rank"], row["tied"] = places.get(row["agent"], (None, False))
        rows += sorted(group, key=lambda row: (*_best_first(row, ranked_by(row)), row["agent"]))
    return rows


def ranked_by(row: ScoreView) -> EstimateView | None:
    """The mean return that an agent's rank goes by: the luck-free one where there is one."""
    return row["luck_free_return"] or row["mean_return"]


def score_row(
    agent: str, scenario: Scenario, cell: Cell, references: References | None, price: Mapping[str, Any] | None
) -> ScoreView:
    """One agent in one scenario, not yet ranked."""
    row = ScoreView(
        agent=agent,
        scenario=scenario.name,
        protocol=scenario.protocol,
        moves=scenario.moves,
        episodes=cell.episodes,
        planned=cell.planned,
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
        success_rate=None,
        invalid_rate=None,
        invalid_reasons=dict(cell.reasons.most_common()),
        length=None,
        tokens=None,
        cost=cost(cell.paid_tokens, price),
        seconds=None,
        seats={},
        metrics={},
        reference=ReferenceView(random=None, random_source="", optimal=None, optimal_source=""),
    )
    if not cell.episodes:
        return row
    table, scale = episode_table(cell, scenario, references)
    free, guessed = luck_free(cell, scenario), controlled(cell, scenario)
    wanted = [
        stats.column(SCORE, possible_returns(scenario, table)),
        normalised(scenario, table, scale),
        stats.ratio(INVALID, RESPONSES),
        stats.column(LENGTH, (1, scenario.horizon)),
        stats.column(TOKENS),
        stats.column(SUCCESS, (0, 1)),
    ]
    if free is not None:
        wanted += [stats.column(LUCK_FREE, (free.lowest, free.highest)), normalised(scenario, table, scale, free)]
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
    row["tokens"], row["success_rate"] = to_view(tokens), to_view(success)
    row["seconds"] = float(np.mean(cell.columns["seconds"]))
    row["seats"] = views(seat_means(cell, scenario))
    row["metrics"] = views(metric_means(cell))
    row["reference"] = ReferenceView(
        random=_mean(scale.random),
        random_source=scale.random_source,
        optimal=_mean(scale.optimal),
        optimal_source=scale.optimal_source,
    )
    return row


def possible_returns(scenario: Scenario, table: stats.Array) -> list[float]:
    """Returns that an episode table needn't show and that are possible: the bounds that the game states.

    Where it states none, the sample has to do; only if all its returns are equal, those of the references stand in.
    """
    if stated := return_range(scenario):
        return [*stated]
    references = table[:, [RANDOM, OPTIMAL]]
    return references[np.isfinite(references)].tolist() if np.ptp(table[:, SCORE]) == 0 else []


def luck_view(cell: Cell, scenario: Scenario, free: Corrected) -> LuckView | None:
    """How luck was taken out; ``None`` in a game without chance."""
    values = LuckValues.of(scenario.game())
    check = None if cell.luck is None else luck_check(cell.luck[:, LUCK], cell.luck[:, VARIANCE])
    if values is None or check is None or free.beta is None:
        return None
    return LuckView(values=values.name, beta=free.beta, sd_ratio=free.sd_ratio, z=check["z"], p=check["p"])


def normalised(scenario: Scenario, table: stats.Array, scale: Scale, free: Corrected | None = None) -> stats.Statistic:
    """The normalised score of an episode table: of the luck-free returns where they are given, else of the plain."""
    played = not scale.optimal_source.startswith("exact")
    if free is not None:
        return stats.normalised(LUCK_FREE, RANDOM, OPTIMAL, ends=(free.lowest, free.highest), played=played)
    return stats.normalised(SCORE, RANDOM, OPTIMAL, possible_returns(scenario, table), played=played)


def episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[stats.Array, Scale]:
    """The columns ``SCORE .. LUCK_FREE`` of a cell, a row for every scored seed in order, and the references in them.

    The last one is freed from luck by exact values, else by a heuristic, else it is the plain return.
    Where there is no reference, its column is NaN, and so is every normalised score.
    """
    known = cell.memo.get("episodes")  # the scores of a scenario, of its suites and over all need the same one
    if known is None or known[0] is not references:
        known = cell.memo["episodes"] = (references, _episode_table(cell, scenario, references))
    found: tuple[stats.Array, Scale] = known[1]
    return found


def _episode_table(cell: Cell, scenario: Scenario, references: References | None) -> tuple[stats.Array, Scale]:
    columns = cell.table()
    seeds = columns["seed"].astype(int).tolist()
    scale = references.scale(scenario, seeds) if references is not None else NO_SCALE
    unknown = np.full(len(seeds), np.nan)
    free = controlled(cell, scenario) if luck_free(cell, scenario) is None else luck_free(cell, scenario)
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
            columns["score"] if free is None else free.values,
        ],
        axis=1,
    )
    return table, scale


def rank(values: Mapping[str, float], told_apart: Callable[[str, str], bool]) -> dict[str, Place]:
    """Places by value, largest first. Agents that can't be told apart from the best of their group share its rank.

    The best agent opens a group; going down, everyone joins it who can't be told apart from that agent; the first who
    can be opens the next group, and so on. So there are fewer tests than agents.
    """
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda name: (-values[name], name)):
        if groups and not told_apart(groups[-1][0], name):
            groups[-1].append(name)
        else:
            groups.append([name])
    places: dict[str, Place] = {}
    for group in groups:
        place = Place(1 + len(places), len(group) > 1)
        places |= dict.fromkeys(group, place)
    return places


def overall_scenarios(results: ResultColumns) -> list[str]:
    """What the overall score is over: the same scenarios for all agents, and none that only a few of them played.

    They are the paper's scenarios where more than half of the agents were to play all of those, else every scenario for
    one player that more than half of the agents were to play.
    """
    protocol = main_protocol(results)
    shared = [
        scenario.name
        for scenario in solo_scenarios(results)
        if is_shared(results, scenario.name) and (scenario.protocol, scenario.moves) == protocol
    ]
    return list(PAPER_SCENARIOS) if set(PAPER_SCENARIOS) <= set(shared) else shared


def is_shared(results: ResultColumns, scenario: str) -> bool:
    """Whether more than half of the agents were to play a scenario, of those who play by its protocol."""
    one = results.scenarios[scenario]
    players = agents_of(results)[one.protocol, one.moves]
    return 2 * sum((agent, scenario) in results.cells for agent in players) > len(players)


def agents_of(results: ResultColumns) -> dict[tuple[str, str], list[str]]:
    """``{(protocol, moves): agents}``: an agent is of one source, and a source of one protocol."""
    found: dict[tuple[str, str], list[str]] = {}
    for agent, name in dict(results.cells):
        members = found.setdefault((results.scenarios[name].protocol, results.scenarios[name].moves), [])
        if agent not in members:
            members.append(agent)
    return found


def main_protocol(results: ResultColumns) -> tuple[str, str]:
    """The protocol that most agents played by, which is what the overall score is of; of equals a plain run's."""
    standard = STANDARD["protocol"], STANDARD["moves"]
    return max(agents_of(results).items(), key=lambda item: (len(item[1]), item[0] == standard))[0]


def overall_rows(
    results: ResultColumns, references: References, names: Sequence[str] | None = None, *, ranked: bool = True
) -> tuple[list[str], list[OverallView]]:
    """Every agent's mean normalised score, best first, unranked ones last, and the scenarios that it is over.

    These are ``names``, or :func:`overall_scenarios`, without those whose scale nobody knows. Without ``ranked`` nobody
    has a rank, which saves the tests.
    """
    names = overall_scenarios(results) if names is None else names
    episodes = {
        key: episode_table(cell, results.scenarios[key[1]], references)
        for key, cell in results.cells.items()
        if key[1] in names and cell.complete
    }
    spans = {name: span_of(table) for (_, name), (table, _) in episodes.items()}
    names = [name for name in names if name not in spans or spans[name] > 0]
    whole = [agent for agent in results.agents if names and all((agent, name) in episodes for name in names)]
    estimates = stats.means_of_estimates(
        [[episodes[agent, name][0] for name in names] for agent in whole],
        [
            [
                normalised(scenario, *episodes[agent, name], luck_free(results.cells[agent, name], scenario))
                for name, scenario in ((name, results.scenarios[name]) for name in names)
            ]
            for agent in whole
        ],
        [max(results.cells[agent, name].confidence for name in names) for agent in whole],
    )
    overall = dict(zip(whole, map(to_view, estimates), strict=True))
    rows = []
    for agent in results.agents:
        lacks = [name for name in names if (agent, name) not in episodes]
        played = len(names) - len(lacks)
        normalized = overall.get(agent)
        rows.append(
            OverallView(agent=agent, rank=None, tied=False, normalized=normalized, scenarios=played, lacks=lacks)
        )
    values = {row["agent"]: row["normalized"]["value"] for row in rows if row["normalized"] is not None}
    if ranked:
        places = rank(values, board_test(results, {name: spans[name] for name in names if name in spans}))
        for row in rows:
            row["rank"], row["tied"] = places.get(row["agent"], (None, False))
    return names, sorted(rows, key=lambda row: (*_best_first(row, row["normalized"]), -row["scenarios"], row["agent"]))


def span_of(table: stats.Array) -> float:
    """How far optimal is above random on these episodes; 0 where that isn't known."""
    span = float((table[:, OPTIMAL] - table[:, RANDOM]).mean())
    return span if span > 1e-12 else 0.0


def board_test(results: ResultColumns, spans: Mapping[str, float]) -> Callable[[str, str], bool]:
    """Whether two agents differ on their common seeds of some scenarios, whose returns weigh as ``spans`` say.

    The test is the paired one, corrected by Bonferroni for everything that the board could compare: which tests are
    made depends on what the ones before showed.
    """
    family = board_family(results)

    def told_apart(a: str, b: str) -> bool:
        return family * stats.paired_p_value(scaled_differences(results, a, b, spans)) < LEVEL

    return told_apart


def scaled_differences(results: ResultColumns, a: str, b: str, spans: Mapping[str, float]) -> stats.Array:
    """The paired differences of two agents in all scenarios of ``spans``, whose sum is that of the scores.

    Of several scenarios each weighs the same, in units of its span; of one alone they stay as they are.
    """
    differences = {name: paired_differences(results, a, b, name) for name in spans}
    return np.concatenate(
        [
            values if len(spans) == 1 else values / (spans[name] * max(1, len(values)))
            for name, values in differences.items()
        ]
    )


def rating_rows(results: ResultColumns) -> list[RatingView]:
    """The head-to-head ratings of every scenario for several players."""
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


def to_view(estimate: stats.Estimate) -> EstimateView | None:
    """The estimate as plain JSON; ``None`` when it isn't a number."""
    if not isfinite(estimate.value):
        return None
    return EstimateView(value=estimate.value, low=estimate.low, high=estimate.high)


def views(estimates: Mapping[str, stats.Estimate]) -> dict[str, EstimateView]:
    """The estimates that are numbers as plain JSON."""
    return {name: view for name, one in estimates.items() if (view := to_view(one)) is not None}


def _mean(values: stats.Array | None) -> float | None:
    return None if values is None else float(values.mean())


def _best_first(row: ScoreView | OverallView, estimate: EstimateView | None) -> tuple[bool, float]:
    return row["rank"] is None, -estimate["value"] if estimate else 0.0
