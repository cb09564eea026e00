"""The levels of agents: from the results of a ladder's scenarios to the rows of its table.

``cells of the levels of one ladder -> y of every episode -> Fit -> LadderView``. An episode is told by what it lost to
the optimum of its own start, in units of the level's headroom::

    y = 1 - (optimum of the start - return) / (optimum - blind play)

whose mean over starts is the normalised score, and which is 1 for best play whatever the start is worth.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from agents.common.intervals import Array, student
from benchmark.score.document import EstimateView, LadderView, RungView
from benchmark.score.ladders.fit import Fit, Seen
from benchmark.score.luck.cells import corrected_returns
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.score.scores import to_view
from textgames.scenarios import Scenario
from textgames.solving.blind import blind_play

UNMEASURED = 100
"""So many episodes tell the headroom of a level that nobody has measured."""


class Rung(NamedTuple):
    """What an agent played at one level."""

    scenario: Scenario
    headroom: float  # of the level: what best play gets above blind play, on average
    values: Array  # ``y`` of every scored episode


def ladder_rows(results: ResultColumns, references: References) -> list[LadderView]:
    """The level of every agent in every ladder of which it played two levels or more."""
    ladders = dict.fromkeys(one.ladder_name for one in results.scenarios.values() if one.level_number)
    rows = []
    for ladder in ladders:
        for agent in results.agents:
            rungs = rungs_of(results, references, agent, ladder)
            if len(rungs) > 1:
                rows.append(_row(agent, ladder, rungs))
    return sorted(rows, key=lambda row: (list(ladders).index(row["scenario"]), -row["level"]["value"]))


def rungs_of(results: ResultColumns, references: References, agent: str, ladder: str) -> dict[int, Rung]:
    """``{level: what was played there}`` of an agent's levels of a ladder that have scored episodes and a scale."""
    found = {}
    for name, scenario in results.scenarios.items():
        cell = results.cells.get((agent, name))
        if not scenario.level_number or scenario.ladder_name != ladder or cell is None or not cell.episodes:
            continue
        seeds, returns = corrected_returns(cell, scenario)
        scale = references.scale(scenario, seeds.astype(int).tolist())
        headroom = headroom_of(scenario, references)
        if scale.reference is None or headroom <= 0:
            continue
        values = 1 - (scale.reference.values - returns) / headroom
        found[scenario.level_number] = Rung(scenario, headroom, values)
    return dict(sorted(found.items()))


def headroom_of(scenario: Scenario, references: References) -> float:
    """What best play gets above blind play: as it was measured of the level, else over its first episodes.

    0 where that isn't known.
    """
    rung, play = scenario.rung, blind_play(scenario)
    if rung is not None and rung.optimum is not None and play is not None:
        return rung.optimum - play.value
    scale = references.scale(scenario, range(scenario.first_seed, scenario.first_seed + UNMEASURED))
    if scale.blind is None or scale.reference is None:
        return 0.0
    return float((scale.reference.values - scale.blind.values).mean())


def fit_of(rungs: Mapping[int, Rung]) -> Fit:
    """What is known of the level of who played these."""
    weights = weights_of(rungs)
    return Fit({level: Seen(rung.values, weights[level]) for level, rung in rungs.items()}, min(rungs), max(rungs))


def weights_of(rungs: Mapping[int, Rung]) -> dict[int, float]:
    """The weight of an episode at each level: returns vary alike at all, so ``y`` does where the headroom is small."""
    most = max(rung.headroom for rung in rungs.values())
    return {level: (rung.headroom / most) ** 2 for level, rung in rungs.items()}


def _row(agent: str, ladder: str, rungs: Mapping[int, Rung]) -> LadderView:
    level, low, high, spread = fit_of(rungs).found()
    first, last = min(rungs), max(rungs)
    return LadderView(
        agent=agent,
        scenario=ladder,
        level=EstimateView(value=level, low=low, high=high),
        beyond="below" if level < first else "above" if level > last else None,
        first=first,
        last=last,
        spread=spread,
        episodes=sum(len(rung.values) for rung in rungs.values()),
        rungs=[
            RungView(level=number, scenario=rung.scenario.name, episodes=len(rung.values), kept=_kept(rung.values))
            for number, rung in rungs.items()
        ],
    )


def _kept(values: Array) -> EstimateView:
    view = to_view(student(np.asarray(values)))
    assert view is not None  # returns are numbers
    return view
