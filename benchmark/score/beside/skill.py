"""Which skill a player lacks: at which kinds of decisions it loses value, where values are exact.

``records -> losses by kind (benchmark.score.move_losses) -> one row a seed -> shares``. A share of the value lost says
little alone: of a player that errs anywhere alike, decisions of a kind lose as much as they are many. So the share of
the decisions stands beside it.
"""

from collections.abc import Sequence
from itertools import groupby, islice

import numpy as np

from agents.common import intervals as stats
from benchmark.runs.folder import RunFolder
from benchmark.score.document import SkillShareView, SkillView
from benchmark.score.move_losses import ALL, KINDS, LIMIT, TIE, FolderLosses, Losses, MoveLosses, folder_losses
from benchmark.score.results import ResultColumns, columns_per_seed
from benchmark.score.scores import to_view

Found = dict[tuple[str, str], list[tuple[int, Losses]]]
"""``{(agent, scenario): [(seed, losses)]}``, one item for every seat of every episode."""


def skill_rows(results: ResultColumns, agents: Sequence[str]) -> list[SkillView]:
    """A row for each of ``agents`` in every scenario with exact values in which it lost any."""
    found: Found = {}
    for source in range(len(results.places)):
        _add_source(results, source, found)
    rows = (
        _row(results, agent, name, found[agent, name])
        for name in results.scenarios
        for agent in agents
        if (agent, name) in found
    )
    return [row for row in rows if row is not None]


def _add_source(results: ResultColumns, source: int, found: Found) -> None:
    folder = RunFolder(*results.sources[source])
    told = results.source_losses[source] | _solo(results, folder)
    offsets = [
        offset
        for name, places in groupby(sorted(results.places[source]), key=lambda place: place[0])
        if name in told
        for _, _, offset in islice(places, LIMIT)
    ]
    for record in folder.records_at(offsets) if offsets else ():
        losses = told[record["scenario"]].of(record)
        for player, agent in record["agents"].items():
            if player in losses and agent in results.names[source]:
                key = results.names[source][agent], record["scenario"]
                found.setdefault(key, []).append((record["seed"], losses[player]))
    for one in told.values():
        one.keep()


def solo_losses(results: ResultColumns, name: str) -> MoveLosses | None:
    """What tells the losses in a scenario for one player; made when it is asked for, since it solves the game."""
    if results.losses.get(name) is None:
        results.losses[name] = MoveLosses.of(results.scenarios[name], players=1)
    found = results.losses[name]
    return found if found is not None and found.players == 1 else None


def _solo(results: ResultColumns, folder: RunFolder) -> dict[str, FolderLosses]:
    names = folder.manifest["scenarios"]
    return folder_losses({name: one for name in names if (one := solo_losses(results, name)) is not None}, folder)


def _row(results: ResultColumns, agent: str, name: str, told: Sequence[tuple[int, Losses]]) -> SkillView | None:
    kinds = [kind for kind in (ALL, *KINDS) if kind in told[0][1]]
    columns = {"seed": np.array([float(seed) for seed, _ in told])}
    columns |= {kind: np.array([losses[kind][0] for _, losses in told]) for kind in kinds}
    table = np.stack(columns_per_seed(columns), axis=1)
    if table[:, 1].sum() < TIE:
        return None
    wanted = [stats.column(1), *(stats.share(2 + place, 1) for place in range(len(kinds) - 1))]
    lost, *shares = map(to_view, stats.bootstrap(table, wanted, results.cells[agent, name].confidence))
    decisions = {kind: sum(losses[kind][1] for _, losses in told) for kind in kinds}
    assert lost is not None  # losses are numbers
    return SkillView(
        agent=agent,
        scenario=name,
        episodes=len(told),
        lost=lost,
        kinds={
            kind: SkillShareView(lost=share, decisions=decisions[kind] / decisions[ALL])
            for kind, share in zip(kinds[1:], shares, strict=True)
            if share is not None
        },
    )
