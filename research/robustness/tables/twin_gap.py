"""The twin gap: what a player gets in a game less what it gets in the same game under other texts.

``cells of a scenario and of its twins, seed by seed -> differences -> mean and interval``. States, chances and rewards
are the same in a game and its twins, so the text made the mean difference: an opening that was read somewhere, a story
that helps, a wording that suits. The interval is over seeds, for the twins that were played, and counts one more seed
with the largest possible gap (:func:`agents.common.mean_estimate`).

An episode of a seed begins in the same state in a game and in its twin, and meets the same chances. At decisions that
both make in the same state with as many moves left, if values are exact, what the twin's move loses more is the story's
doing or that of the player's own sampling, and the latter makes as much on average in either direction. The rest of the
gap was lost in states that only one of the two episodes came to.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from agents.common import Array, column, is_above, mean_estimate, means_of_estimates
from benchmark.runs import RunFolder, num_players
from benchmark.score import (
    Cell,
    Decision,
    EstimateView,
    FolderCache,
    References,
    ResultColumns,
    corrected_returns,
    game_weights,
    luck_free,
    read_cache,
    return_range,
    solo_losses,
    span_of,
    to_view,
    write_cache,
)
from benchmark.show import AGENT, Column, Figure, Table, estimate, estimate_figure, value
from textgames import Scenario
from textgames.twins import Twin

LIMIT = 500  # the most seeds of an agent that are played again for it


class Changed(NamedTuple):
    """One seed of an agent in a game and its twins."""

    # in a twin, at decisions in the game's states whose move is another: the value lost more than in the game. The
    # mean over twins
    lost: float
    changed: int  # how many decisions these are, in all twins
    common: int  # how many are in the game's states


def changed_moves(results: ResultColumns, twins: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[Changed]]:
    """Return ``{(agent, scenario): its seeds}`` of the scenarios for one player whose values are exact."""

    def of_json(kept: Mapping[str, Any]) -> dict[str, list[Changed]]:
        return {
            agent: [Changed(float(lost), int(changed), int(common)) for lost, changed, common in seeds]
            for agent, seeds in kept.items()
        }

    found: dict[tuple[str, str], list[Changed]] = {}
    for source, (path, manifest) in enumerate(results.sources):
        folder = RunFolder(path, manifest)
        cache = FolderCache(folder, "score/move_losses.py", Path(__file__))
        for name, told in twins.items():
            played = [one for one in (name, *told) if one in manifest["scenarios"]]
            if name not in played or len(played) < 2 or any(solo_losses(results, one) is None for one in played):
                continue
            file = cache.file("changed", results.scenarios[name], " ".join(played))
            if (known := read_cache(file, of_json)) is None:
                known = _changed(results, folder, source, played)
                write_cache(file, known)
            for agent, seeds in known.items():
                if seeds and agent in results.names[source]:
                    found[results.names[source][agent], name] = seeds
    return found


def _changed(results: ResultColumns, folder: RunFolder, source: int, played: Sequence[str]) -> dict[str, list[Changed]]:
    """Return ``{agent in the folder: its seeds}`` in a game, which comes first, and its twins."""
    decisions: dict[tuple[str, int], dict[str, dict[Any, Decision]]] = {}
    places = [place for place in results.places[source] if place[0] in played]
    seeds = set(sorted({seed for _, seed, _ in places})[:LIMIT])
    for record in folder.records_at([offset for _, seed, offset in places if seed in seeds]):
        losses = solo_losses(results, record.scenario)
        if record.error is None and losses is not None:
            (agent,) = record.agents.values()
            states = {(one.state, one.steps_left): one for one in losses.decisions(record)}
            decisions.setdefault((agent, record.seed), {})[record.scenario] = states
    found: dict[str, list[Changed]] = {}
    for (agent, _), told in decisions.items():
        if len(told) == len(played):
            pairs = [_pairs(told[played[0]], told[twin], results.scenarios[twin]) for twin in played[1:]]
            lost = sum(two.lost - one.lost for each in pairs for one, two in each if one.action != two.action)
            changed = sum(one.action != two.action for each in pairs for one, two in each)
            found.setdefault(agent, []).append(Changed(lost / len(pairs), changed, sum(map(len, pairs))))
    return found


def _pairs(
    game: Mapping[Any, Decision], twin: Mapping[Any, Decision], scenario: Scenario
) -> list[tuple[Decision, Decision]]:
    """Return the decisions in equal states; the twin's with the game's name of its action, if it has one."""
    told = scenario.game()
    assert isinstance(told, Twin)
    return [
        (game[state], decision._replace(action=told.own_action(decision.action) if decision.action else ""))
        for state, decision in twin.items()
        if state in game
    ]


LEAST_SEEDS = 6
"""The fewest seeds on which a gap can be above 0: without any true gap, n coins fall on one side with chance 2^-n, and
no interval of 95% may leave out more than 2.5% there."""


class TwinGapView(TypedDict):
    """What an agent gets in a scenario less the mean of what it gets in its twins, paired by seed."""

    agent: str
    scenario: str  # empty: over all of the agent's scenarios whose gap is one of scores, weighted as the overall score
    twins: int  # how many twins were played
    pairs: int  # seeds that were scored in the game and in all of these
    gap: EstimateView  # the interval is over seeds, for these twins
    unit: Literal["score", "return"]  # of the normalised score, or of the return if there is none
    above_zero: bool
    """Whether the whole interval is above 0, on enough seeds: the player does better under the text of the original."""
    by_changed_moves: EstimateView | None
    """The part of the gap that was lost where the story changed the move: in states that an episode of the same seed
    came to in the game, too, the value lost in the twin less that in the game. ``None`` if values aren't exact."""
    moves_changed: float | None  # in which share of the decisions in such states the move was another


class Gaps(NamedTuple):
    """The gaps of one agent in one scenario, and what their interval needs."""

    values: Array  # seed by seed, shape (seeds,)
    possible: tuple[float, float]  # the least and the largest gap that one more seed may have
    confidence: float  # the level of the interval
    unit: Literal["score", "return"]
    twins: int  # how many were played
    span: float = 1.0  # what returns are divided by to be in that unit


def twin_gap_rows(results: ResultColumns, references: References) -> list[TwinGapView]:
    """Return the gap of every agent in every scenario that it played with twins, and over all of these with a score.

    A gap is in units of the normalised score if both of its ends are known, else in those of the return.
    """
    twins: dict[str, list[str]] = {}
    for name, scenario in results.scenarios.items():
        if scenario.twin_number and scenario.plain_name in results.scenarios:
            twins.setdefault(scenario.plain_name, []).append(name)
    changed = changed_moves(results, twins)
    rows = []
    for agent in results.agents:
        told = {name: gaps for name in twins if (gaps := _gaps_of(results, references, agent, name, twins[name]))}
        for name, gaps in told.items():
            rows.append(gap_row(agent, name, [gaps], [1.0]))
            if len(moves := changed.get((agent, name), ())) > 1:
                lost = np.array([one.lost for one in moves]) / gaps.span
                most = float(np.abs(lost).max())
                rows[-1]["by_changed_moves"] = to_view(mean_estimate(lost, (-most, most), gaps.confidence))
                common = sum(one.common for one in moves)
                rows[-1]["moves_changed"] = sum(one.changed for one in moves) / max(1, common)
        scored = {name: gaps for name, gaps in told.items() if gaps.unit == "score"}
        if len(scored) > 1:
            rows.append(gap_row(agent, "", list(scored.values()), list(game_weights(results, list(scored)).values())))
    return rows


def paired_gaps(cells: Sequence[Cell], scenarios: Sequence[Scenario]) -> Array:
    """Return (seeds,) the return on every seed that was scored in the game and in all of its twins, less the twins'
    mean.

    The game comes first. Returns are luck-free if the game offers that.
    """
    every = [corrected_returns(*pair) for pair in zip(cells, scenarios, strict=True)]
    common = reduce(np.intersect1d, [seeds for seeds, _ in every])
    own, *others = [returns[np.isin(seeds, common)] for seeds, returns in every]
    gaps: Array = own - np.mean(others, axis=0)
    return gaps


def _gaps_of(
    results: ResultColumns, references: References, agent: str, name: str, twins: Sequence[str]
) -> Gaps | None:
    """Return one agent in one scenario; ``None`` if it didn't play both it and a twin, or no two seeds of all."""
    played = [one for one in (name, *twins) if (agent, one) in results.cells]
    if name not in played or len(played) < 2:
        return None
    cells, scenarios = [results.cells[agent, one] for one in played], [results.scenarios[one] for one in played]
    gaps = paired_gaps(cells, scenarios)
    if len(gaps) < 2:
        return None
    span = span_of(results, references, agent, name) if num_players(scenarios[0]) == 1 else 0.0
    most = max(span, *np.abs(gaps))  # without a stated range a gap may go either way as far as one has gone
    possible = (-most, most)
    if stated := return_range(scenarios[0]):
        free = [luck_free(*pair) for pair in zip(cells, scenarios, strict=True)]
        ends = [stated if one is None or None in free else one.ends or stated for one in free]
        low, high = np.mean(ends[1:], axis=0).tolist()
        possible = (ends[0][0] - high, ends[0][1] - low)
    unit = span or 1.0
    return Gaps(
        values=gaps / unit,
        possible=(possible[0] / unit, possible[1] / unit),
        confidence=max(cell.confidence for cell in cells),
        unit="score" if span else "return",
        twins=len(played) - 1,
        span=unit,
    )


def gap_row(agent: str, scenario: str, gaps: Sequence[Gaps], weights: Sequence[float]) -> TwinGapView:
    """Return the mean over scenarios, weighted as the overall score; their episodes are independent."""
    (estimate,) = means_of_estimates(
        [[one.values[:, None] for one in gaps]],
        [[column(0, one.possible) for one in gaps]],
        [max(one.confidence for one in gaps)],
        weights,
    )
    pairs = sum(len(one.values) for one in gaps)
    return TwinGapView(
        agent=agent,
        scenario=scenario,
        twins=max(one.twins for one in gaps),
        pairs=pairs,
        gap=EstimateView(value=estimate.value, low=estimate.low, high=estimate.high),
        unit=gaps[0].unit,
        above_zero=pairs >= LEAST_SEEDS and estimate.low is not None and is_above(estimate.low),
        by_changed_moves=None,
        moves_changed=None,
    )


_NOTE = (
    "a gap above 0 is what was memorised or helped by the text that everybody knows; intervals are over seeds, for "
    "these twins"
)


def _by_changed_moves(row: TwinGapView) -> Figure:
    shown = estimate_figure(row["by_changed_moves"])
    share = row["moves_changed"]
    return shown if share is None else shown._replace(interval=f"{shown.interval} in {share:.0%}".strip())


_COLUMNS: tuple[Column[TwinGapView], ...] = (
    AGENT,
    Column("scenario", "scenario", lambda row: Figure(row["scenario"] or "all of them"), "ascending"),
    estimate(
        "gap", "twin gap", explain="the score in the game less the mean of those in its twins, paired by seed", bar=True
    ),
    Column(
        "by_changed_moves",
        "by changed moves",
        _by_changed_moves,
        explain="lost where the story changed the move, in states of the game's own episode of the seed",
        needed=lambda rows: any(row["by_changed_moves"] is not None for row in rows),
    ),
    value("unit", "of", first="ascending", wide_only=True),
    value("twins"),
    value("pairs", "seeds"),
)


def _brief(rows: Sequence[TwinGapView]) -> dict[str, Figure]:
    """Return an agent's gap over all of its scenarios, or in the only one that it has."""
    over_all = [row for row in rows if not row["scenario"]] or rows
    return {"twin gap": estimate_figure(over_all[0]["gap"], "+.2f")} if len(over_all) == 1 else {}


TWIN_GAPS = Table(
    "twin_gaps",
    "twin gap",
    _COLUMNS,
    (_NOTE,),
    lambda scored: twin_gap_rows(scored.results, scored.references),
    "Twin gap: the score less that in its twins.",
    _brief,
)
