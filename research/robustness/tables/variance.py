"""Where the variance of an agent's returns comes from: starts, chance, the model's sampling, the wording of prompts.

A return is ``mu + w + s + e``: ``w`` is of the wording, ``s`` of the seed's start, ``e`` of the model's samples, and
chance is what variance reduction removes. A run plays every start once, which can't tell ``s`` from ``e``. A second run
of the same seeds whose settings say ``resample`` draws other samples on the same starts and chances. For returns
without luck,

* **sampling** is the mean variance between the plays of a seed;
* **starts** is the rest of the variance between the episodes of one wording, with whatever else the plays of a seed
  share: chance that luck doesn't tell, and a wording that suits some starts alone;
* **chance** is the variance of plain returns less that of returns without luck;
* **wording** is the variance of the wordings' means, less what the episodes in them make of it.

All are unbiased, so what is near 0 may come out below it. Intervals are over seeds, for the wordings that were played:
of 120 seeds they covered 94 to 96% in simulations, and 90 to 97% of 40.
"""

from collections.abc import Callable, Sequence
from os.path import relpath
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from agents import wording_of
from agents.common import Array, Estimate, over_rows
from benchmark.score import (
    Cell,
    EstimateView,
    ResultColumns,
    corrected_returns,
    luck_free,
    samples_of,
    solo_scenarios,
    to_view,
)
from benchmark.show import AGENT, SCENARIO, Column, Figure, Table, estimate_figure, value
from research.robustness.tables.wordings import wordings_of
from textgames import Scenario

LIMIT = 2000  # the most seeds that are looked at: more have narrow intervals


class VarianceView(TypedDict):
    """Where the variance of one episode of an agent in a scenario comes from, in squared units of the return.

    Parts are unbiased: one may come out below 0, which then means none that can be seen. Intervals are over seeds, for
    these wordings. A part is ``None`` if it isn't told from the others; ``missing`` says what would do that.
    """

    agent: str
    scenario: str
    seeds: int
    plays: int  # of each seed, at most
    wording: EstimateView | None
    starts: EstimateView | None  # with whatever of chance luck doesn't tell, and a wording that suits some starts alone
    chance: EstimateView | None  # what taking luck out removes
    sampling: EstimateView | None
    starts_and_sampling: EstimateView | None
    missing: list[str]


class Plays(NamedTuple):
    """The episodes of one agent in one scenario, a row for every seed and a column for every play of it."""

    free: Array  # returns without luck if it is known, else the plain ones; NaN if a seed wasn't played
    plain: Array | None  # the returns; ``None`` if luck isn't known
    wordings: NDArray[np.str_]  # of each seed; every one of them has at least two


def parts(plays: Plays) -> dict[str, Estimate]:
    """Return the parts of the variance of one episode, by their names.

    ``starts`` and ``sampling`` are missing if no seed was played twice; ``rest``, always there, is both. ``chance`` is
    missing if luck isn't known, and ``wording`` with only one.
    """
    groups = [plays.wordings == name for name in np.unique(plays.wordings)]
    often = (~np.isnan(plays.free)).sum(axis=1) > 1
    between_plays, mean = np.zeros(len(often)), np.nanmean(plays.free, axis=1)
    between_plays[often] = np.nanvar(plays.free[often], axis=1, ddof=1)
    rest, of_means = _squares(plays.free, groups), _squares(mean[:, None], groups)
    chance = np.zeros(len(rest)) if plays.plain is None else _squares(plays.plain, groups) - rest
    # a row for every seed, of whose columns' means each part is made
    told = [column for group in groups for column in (group, group * mean)]
    table = np.stack([rest, chance, often, often * between_plays, of_means, *told], axis=1)

    def wording_of_means(means: Array) -> Array:
        # the mean of a wording is off by its episodes' scatter
        scatter = float(np.mean([1 / group.sum() for group in groups]))
        told = means[..., 5:]
        wording: Array = np.var(told[..., 1::2] / told[..., ::2], axis=-1, ddof=1) - scatter * means[..., 4]
        return wording

    parts_of: dict[str, Callable[[Array], Array]] = {"rest": lambda means: means[..., 0]}
    if often.any():
        parts_of["sampling"] = lambda means: means[..., 3] / means[..., 2]
        parts_of["starts"] = lambda means: means[..., 0] - means[..., 3] / means[..., 2]
    if plays.plain is not None:
        parts_of["chance"] = lambda means: means[..., 1]
    if len(groups) > 1:
        parts_of["wording"] = wording_of_means
    least = max(1e-12 * abs(float(rest.mean())), 1e-20)  # what rounding leaves of nothing

    def rounded(end: float | None) -> float | None:
        return 0.0 if end is not None and abs(end) <= least else end

    return {name: Estimate._make(map(rounded, over_rows(table, of))) for name, of in parts_of.items()}


def _squares(values: Array, groups: Sequence[NDArray[np.bool_]]) -> Array:
    """Return every seed's part of the variance within wordings, shape (seeds,).

    It is unbiased: squared distances from the wording's mean, in each play, are made larger by ``n / (n - 1)``.
    """
    squares = np.full(values.shape, np.nan)
    for play, own in zip(values.T, squares.T, strict=True):
        for group in groups:
            here = group & ~np.isnan(play)
            if (count := int(here.sum())) > 1:
                own[here] = (play[here] - play[here].mean()) ** 2 * count / (count - 1)
    found: Array = np.nanmean(squares, axis=1)
    return found


def variance_rows(results: ResultColumns) -> list[VarianceView]:
    """Return every agent in every scenario for one player that it played in several wordings, or again."""
    rows = []
    for scenario in solo_scenarios(results):
        for agent in results.agents:
            if (agent, scenario.name) not in results.cells:
                continue
            samples = samples_of(results, agent, scenario.name)
            again = [other for resample, other in samples.items() if resample is not None]
            if agent not in again:
                told = wordings_of(results.agents[agent])
                plays = _plays([results.cells[name, scenario.name] for name in (agent, *again)], scenario, tuple(told))
                if (len(told) > 1 or again) and plays is not None:
                    rows.append(_row(results, agent, scenario, plays))
    return rows


def _plays(cells: Sequence[Cell], scenario: Scenario, told: tuple[str, ...]) -> Plays | None:
    """Return the first cell's seeds, with what the others have of these; ``None`` if no wording has two seeds."""
    seeds = cells[0].returns()[0][:LIMIT]
    wordings = np.array([wording_of(int(seed), told) if told else "" for seed in seeds])
    names, counts = np.unique(wordings, return_counts=True)
    kept = np.isin(wordings, names[counts > 1])
    if not kept.any():
        return None

    def table(returns: Sequence[tuple[Array, Array]]) -> Array:
        columns = np.full((len(seeds), len(returns)), np.nan)
        for column, (own, values) in zip(columns.T, returns, strict=True):
            _, ours, theirs = np.intersect1d(seeds, own, return_indices=True)
            column[ours] = values[theirs]
        return columns[kept]

    known = all(luck_free(cell, scenario) is not None for cell in cells)
    plain = table([cell.returns() for cell in cells])
    free = table([corrected_returns(cell, scenario) for cell in cells]) if known else plain
    return Plays(free, plain if known else None, wordings[kept])


def _row(results: ResultColumns, agent: str, scenario: Scenario, plays: Plays) -> VarianceView:
    found = {name: to_view(one) for name, one in parts(plays).items()}
    path = relpath(results.sources[results.agent_source[agent]][0])
    missing = []
    if "sampling" not in found:
        missing.append(
            f"to tell starts from sampling, give the command of {path} again with --resample 1 --out DIR, and show "
            f"both: textbench leaderboard {path} DIR --stats"
        )
    if "wording" not in found and results.agents[agent]["settings"].get("prompt_map"):
        missing.append("--prompts all shows what wordings do")
    if "chance" not in found:
        missing.append(
            f"{scenario.name}: chance is in starts and sampling; only exact values and 20 episodes tell luck"
        )
    return VarianceView(
        agent=agent,
        scenario=scenario.name,
        seeds=len(plays.free),
        plays=int((~np.isnan(plays.free)).sum(axis=1).max()),
        wording=found.get("wording"),
        starts=found.get("starts"),
        chance=found.get("chance"),
        sampling=found.get("sampling"),
        starts_and_sampling=found["rest"],
        missing=missing,
    )


_NOTE = (
    "of one episode's return, with the share of all; parts are unbiased, so that one may be below 0; intervals are "
    "over seeds, for these wordings"
)
_PARTS = ("wording", "starts", "chance", "sampling")


def _column(key: str) -> Column[VarianceView]:
    def figure(row: VarianceView) -> Figure:
        part: EstimateView | None = row[key]  # type: ignore[literal-required]
        shown = estimate_figure(part, ".3g")
        every = [row["wording"], row["chance"], row["starts_and_sampling"]]
        total = sum(one["value"] for one in every if one is not None)
        share = f" {part['value'] / total:.0%}" if part is not None and total > 0 else ""
        return shown._replace(interval=f"{shown.interval}{share}".strip())

    def needed(rows: Sequence[VarianceView]) -> bool:
        return key in _PARTS or any(row["sampling"] is None for row in rows)

    return Column(key, key.replace("_", " "), figure, "ascending", needed=needed)


VARIANCE = Table(
    "variance",
    "where the variance comes from",
    (AGENT, SCENARIO, *map(_column, (*_PARTS, "starts_and_sampling")), value("seeds", wide_only=True)),
    (_NOTE,),
    lambda scored: variance_rows(scored.every),
)
