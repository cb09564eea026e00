"""The rows of the tables beside the scores: reliability, skills, protocols and levels.

A player that errs anywhere alike loses as much at decisions of a kind as they are many, so the share of the decisions
stands beside the share of the value lost. An agent that several sources hold under one name, with equal settings, has a
row for each of its protocols in a scenario, and the paired difference to the first, the standard one if that was
played. For levels an episode's ``y`` is 1 less its loss to the optimum of its own start, in units of the level's
headroom (optimum less blind play).
"""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple, cast

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import Array, student
from agents.episode import Episode
from agents.models.served.answers import NO_ANSWER
from benchmark.runs.folder import RunFolder
from benchmark.score.comparison import cell_differences, mean_difference, solo_scenarios
from benchmark.score.document import (
    EstimateView,
    LadderView,
    OverallView,
    ProtocolView,
    ReliabilityView,
    RungView,
    ScoreView,
    SizeView,
    SkillShareView,
    SkillView,
)
from benchmark.score.levels import Fit, Seen
from benchmark.score.move_losses import ALL, KINDS, LIMIT, TIE, Losses, MoveLosses, folder_losses
from benchmark.score.protocols import label, plain_name, told
from benchmark.score.references import References
from benchmark.score.results import Cell, ResultColumns, columns_per_seed, corrected_returns
from benchmark.score.scores import ranked_by, to_view
from textgames.scenarios import Scenario
from textgames.solving.blind import blind_play

OF_RESPONSES = ("invalid", "cut_off", "refused")


def reliability_rows(results: ResultColumns, agents: Sequence[str]) -> list[ReliabilityView]:
    """Make a row for each of ``agents``, over all scenarios that it played; they are of one protocol."""
    played = {agent: [key for key in results.cells if key[0] == agent] for agent in agents}
    return [  # a manifest may have a card of an agent and no matchup
        _reliability(agent, results.scenarios[keys[0][1]], [results.cells[key] for key in keys])
        for agent, keys in played.items()
        if keys
    ]


def _reliability(agent: str, scenario: Scenario, cells: Sequence[Cell]) -> ReliabilityView:
    scored, names = sum(cell.episodes for cell in cells), ("responses", *OF_RESPONSES, "forfeited")
    shares: dict[str, EstimateView | None] = dict.fromkeys(names[1:])
    columns = {name: np.concatenate([cell.columns[name] for cell in cells]) for name in ("seed", *names)}
    if scored:
        # a seed's games in several scenarios may be of one start, as those of a game and its twins are: they are one
        # observation, in which every response and episode counts once, though one scenario has more of them a seed
        _, place, games = np.unique(columns["seed"], return_inverse=True, return_counts=True)
        table = np.stack([*(np.bincount(place, columns[name]) for name in names), games], axis=1)
        wanted = [stats.share(names.index(name), 0) for name in OF_RESPONSES] + [stats.share(4, 5)]
        estimates = stats.bootstrap(table, wanted, max(cell.confidence for cell in cells))
        shares = dict(zip(shares, map(to_view, estimates), strict=True))
    late = sum(count for cell in cells for reason, count in cell.errors.items() if reason.startswith(NO_ANSWER))
    failed = sum(cell.unscored for cell in cells) - late
    episodes = scored + late + failed
    for name, count in (("timed_out", late), ("failed", failed)):
        happened = (np.arange(episodes) < count).astype(float)
        shares[name] = to_view(stats.mean_estimate(happened, (0.0, 1.0))) if episodes else None
    about = {"agent": agent, "protocol": scenario.protocol, "moves": scenario.moves, "episodes": episodes}
    return cast(ReliabilityView, {**about, "responses": int(columns["responses"].sum()), **shares})


def skill_rows(results: ResultColumns, agents: Sequence[str]) -> list[SkillView]:
    """Make a row for each of ``agents`` in every scenario with exact values in which it lost any."""
    found = seat_losses(results)
    keys = [(agent, name) for name in results.scenarios for agent in agents if (agent, name) in found]
    return [row for agent, name in keys if (row := _skill(results, agent, name, found[agent, name]))]


class Seat(NamedTuple):
    """The value that an agent lost in one seat of one episode, and the place of the episode's line."""

    seed: int
    losses: Losses
    source: int  # index into the results' sources
    offset: int
    player: str


def seat_losses(results: ResultColumns) -> dict[tuple[str, str], list[Seat]]:
    """Return ``{(agent, scenario): its seats}`` of the scenarios with exact values; found once."""
    found: dict[tuple[str, str], list[Seat]] = results.memo.setdefault(seat_losses, {})
    if found:
        return found
    for source, names in enumerate(results.names):
        folder = RunFolder(*results.sources[source])
        solo = {name: one for name in folder.manifest["scenarios"] if (one := solo_losses(results, name)) is not None}
        told = results.source_losses[source] | folder_losses(solo, folder)
        for offset, record in records_of(results, source, told):
            losses = told[record.scenario].of(record) or {}
            for player, agent in record.agents.items():
                if player in losses and agent in names:
                    seat = Seat(record.seed, losses[player], source, offset, player)
                    found.setdefault((names[agent], record.scenario), []).append(seat)
        for kept in told.values():
            kept.keep()
    return found


def records_of(results: ResultColumns, source: int, scenarios: Container[str]) -> Iterator[tuple[int, Episode]]:
    """Yield the records of a source in these scenarios with their places, at most :data:`LIMIT` of each."""
    offsets = [
        offset
        for name, places in groupby(sorted(results.places[source]), key=lambda place: place[0])
        if name in scenarios
        for _, _, offset in islice(places, LIMIT)
    ]
    return zip(offsets, RunFolder(*results.sources[source]).records_at(offsets) if offsets else (), strict=True)


def losses_in(results: ResultColumns, name: str) -> MoveLosses | None:
    """Return the finder of losses in a scenario; that of one player is made on demand, since it solves the game."""
    if results.losses.get(name) is None:
        results.losses[name] = MoveLosses.of(results.scenarios[name], players=1)
    return results.losses[name]


def solo_losses(results: ResultColumns, name: str) -> MoveLosses | None:
    """Return the finder of losses in a scenario for one player."""
    found = losses_in(results, name)
    return found if found is not None and found.players == 1 else None


def _skill(results: ResultColumns, agent: str, name: str, seats: Sequence[Seat]) -> SkillView | None:
    kinds = [kind for kind in (ALL, *KINDS) if kind in seats[0].losses]
    columns = {"seed": np.array([float(seat.seed) for seat in seats])}
    columns |= {kind: np.array([seat.losses[kind][0] for seat in seats]) for kind in kinds}
    table = np.stack(columns_per_seed(columns), axis=1)
    if table[:, 1].sum() < TIE:
        return None
    wanted = [stats.column(1), *(stats.share(2 + place, 1) for place in range(len(kinds) - 1))]
    lost, *shares = map(to_view, stats.bootstrap(table, wanted, results.cells[agent, name].confidence))
    decisions = {kind: sum(seat.losses[kind][1] for seat in seats) for kind in kinds}
    assert lost is not None  # losses are numbers
    return SkillView(
        agent=agent,
        scenario=name,
        episodes=len(seats),
        lost=lost,
        kinds={
            kind: SkillShareView(lost=share, decisions=decisions[kind] / decisions[ALL])
            for kind, share in zip(kinds[1:], shares, strict=True)
            if share is not None
        },
    )


def protocol_rows(results: ResultColumns, scores: Sequence[ScoreView]) -> list[ProtocolView]:
    """Make a row for every agent, scenario for one player and protocol, if it played by several."""
    by_name = {(row["agent"], row["scenario"]): row for row in scores}
    solo = {scenario.name for scenario in solo_scenarios(results)}
    same: dict[str, list[str]] = {}  # the names here of every agent, by its card
    for name, card in results.agents.items():
        same.setdefault(json.dumps(card, sort_keys=True), []).append(name)
    rows: list[ProtocolView] = []
    for names in (names for names in same.values() if len(names) > 1):
        played: dict[str, list[tuple[str, str]]] = {}
        for key in (key for name in names for key in results.cells if key[0] == name and key[1] in solo):
            played.setdefault(plain_name(key[1]), []).append(key)
        for plain, keys in played.items():
            first, *others = sorted(keys, key=lambda key: bool(label(*results.scenarios[key[1]].rules)))
            others = [key for key in others if _same_game(results.scenarios[first[1]], results.scenarios[key[1]])]
            shown = (first, *others) if others else ()
            rows += [_by_protocol(results, by_name[key], plain, key, first) for key in shown]
    return rows


def _same_game(first: Scenario, second: Scenario) -> bool:
    """Return whether two scenarios differ in their protocols, and in nothing else that decides an episode."""
    about: dict[str, Any] = {"name": "", "protocol": "", "moves": "", "training": False}
    return first.rules != second.rules and first._replace(**about) == second._replace(**about)


def _by_protocol(
    results: ResultColumns, score: ScoreView, plain: str, key: tuple[str, str], first: tuple[str, str]
) -> ProtocolView:
    cells, scenarios = [results.cells[one] for one in (key, first)], [results.scenarios[one[1]] for one in (key, first)]
    differences = cell_differences(cells, scenarios)
    compared = key != first and len(differences) > 1
    return ProtocolView(
        agent=results.agents[key[0]]["name"],
        scenario=plain,
        protocol=scenarios[0].protocol,
        moves=scenarios[0].moves,
        mean=ranked_by(score),
        invalid_rate=score["invalid_rate"],
        difference=to_view(mean_difference(differences, cells, scenarios)[0]) if compared else None,
        against=told(scenarios[1]),
        pairs=len(differences),
    )


def size_of(card: Mapping[str, Any]) -> int | None:
    """Return how many parameters an agent's model has; ``None`` if that is unknown, as of a model behind a server."""
    count = card["settings"].get("model_parameters")
    return count if isinstance(count, int) and count > 0 else None


def size_rows(results: ResultColumns, overall: Sequence[OverallView], scores: Sequence[ScoreView]) -> list[SizeView]:
    """Make a row for each agent whose model's size is known, smallest first; none unless sizes differ."""
    rows = []
    for row in overall:
        if (size := size_of(results.agents[row["agent"]])) is not None:
            costs = [score["cpu_seconds"] for score in scores if score["agent"] == row["agent"]]
            known = [cost for cost in costs if cost is not None]
            mean = sum(known) / len(known) if len(known) == len(costs) > 0 else None
            rows.append(SizeView(**row, size=size, cpu_seconds=mean))
    return sorted(rows, key=lambda row: row["size"]) if len({row["size"] for row in rows}) > 1 else []


UNMEASURED = 100  # so many episodes tell the headroom of a level that has not been measured


class Rung(NamedTuple):
    """The episodes of an agent at one level."""

    scenario: Scenario
    headroom: float  # of the level: what best play gets above blind play, on average
    values: Array  # ``y`` of every scored episode


def ladder_rows(results: ResultColumns, references: References) -> list[LadderView]:
    """Find the level of every agent in every ladder of which it played two levels or more."""
    rows = []
    for ladder in dict.fromkeys(one.ladder_name for one in results.scenarios.values() if one.level_number):
        own = []
        for agent in results.agents:
            rungs = rungs_of(results, references, agent, ladder)
            if len(rungs) < 2:
                continue
            level, low, high, spread = fit_of(rungs).found()
            first, last = min(rungs), max(rungs)
            own.append(
                LadderView(
                    agent=agent,
                    scenario=ladder,
                    level=EstimateView(value=level, low=low, high=high),
                    beyond="below" if level < first else "above" if level > last else None,
                    first=first,
                    last=last,
                    spread=spread,
                    episodes=sum(len(rung.values) for rung in rungs.values()),
                    rungs=[
                        RungView(level=number, scenario=rung.scenario.name, episodes=len(rung.values), kept=view)
                        for number, rung in rungs.items()
                        if (view := to_view(student(rung.values))) is not None
                    ],
                )
            )
        rows += sorted(own, key=lambda row: -row["level"]["value"])
    return rows


def rungs_of(results: ResultColumns, references: References, agent: str, ladder: str) -> dict[int, Rung]:
    """Return an agent's rungs by level, of a ladder's levels that have scored episodes and a scale."""
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
    """Return the surplus of best over blind play, as measured or over the level's first episodes; 0 if unknown."""
    rung, play = scenario.rung, blind_play(scenario)
    if rung is not None and rung.optimum is not None and play is not None:
        return rung.optimum - play.value
    scale = references.scale(scenario, range(scenario.first_seed, scenario.first_seed + UNMEASURED))
    if scale.blind is None or scale.reference is None:
        return 0.0
    return float((scale.reference.values - scale.blind.values).mean())


def fit_of(rungs: Mapping[int, Rung]) -> Fit:
    """Return the posterior of the level of an agent that played these."""
    weights = weights_of(rungs)
    return Fit({level: Seen(rung.values, weights[level]) for level, rung in rungs.items()}, min(rungs), max(rungs))


def weights_of(rungs: Mapping[int, Rung]) -> dict[int, float]:
    """Weigh an episode at each level: returns vary alike at all, so ``y`` varies more if the headroom is small."""
    most = max(rung.headroom for rung in rungs.values())
    return {level: (rung.headroom / most) ** 2 for level, rung in rungs.items()}
