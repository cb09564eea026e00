"""Stored answers read again: how many of the unreadable ones another reading reads, and how good these decisions are.

``record -> replay -> state and answer of every decision -> reading -> action -> value lost``. An answer is read in the
state in which it was given. A decision that differs from what was executed ends what is known of its episode: the state
after it was never played. So of each episode the first such decision is counted apart, in a state that the player would
have come to by this reading, too. No score and no rank goes by a reading.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agents.common import intervals as stats
from agents.episode import Episode
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay_if_unchanged, requests_of
from benchmark.score.beside import losses_in, records_of
from benchmark.score.cache import FolderCache, RecordCache
from benchmark.score.document import EstimateView, Reading, ReadingView
from benchmark.score.move_losses import TIE, MoveLosses, value_lost
from benchmark.score.results import Cell, ResultColumns, columns_per_seed
from benchmark.score.scores import to_view
from textgames.scenarios import Scenario
from textgames.texts.lenient import read_leniently
from textgames.tsmg import TSMG, Action, GameError, Player

READINGS: dict[Reading, Callable[[TSMG[Any], str, Any, Player], Action | None]] = {
    "lenient": read_leniently,
    "strict": lambda game, text, state, player: game.interpret(text, state, player),
}
"""The readings by their names; ``strict`` is the one that is played by, as it is today."""

COUNTED = (
    # answers; those that were invalid when they were played; of these read; of the valid ones read otherwise
    *("answers", "invalid", "read", "changed"),
    # if values are exact: decisions that only the reading reads; those that lose no value, and how many of as many
    # random ones would lose none; the value that they lose
    *("valued", "optimal", "chance", "lost"),
    # 1 for a first decision that differs; its round from 1; if values are exact: 1, what the executed action lost,
    # and what the decision loses
    *("diverged", "round", "known", "executed", "decided"),
)
SUMS = ("chance", "lost", "round", "executed", "decided")  # those of them that are no counts
Counts = dict[str, float]
"""Counts of one player in one episode, by :data:`COUNTED`."""


def read_again(record: Episode, scenario: Scenario, reading: Reading, losses: MoveLosses | None) -> dict[str, Counts]:
    """Count the answers of every player in a record; empty if it doesn't replay to what the players saw."""
    found = {player: dict.fromkeys(COUNTED, 0.0) for player in record.agents}
    for step in record.steps:
        found[step.player]["answers"] += len(step.answers)
        found[step.player]["invalid"] += sum(unreadable is not None for _, unreadable in step.answers)
    if reading == "lenient" and not any(own["invalid"] for own in found.values()):
        return found  # what the strict reading reads the lenient one reads alike
    try:
        played = replay_if_unchanged(record, scenario)
    except GameError:  # a user's own, which breaks now
        played = None
    if played is None:
        return {}
    read, first = READINGS[reading], None
    for done, (step, request) in zip(record.steps, requests_of(played), strict=True):
        own, decided = found[step.player], None
        for turn, unreadable in done.answers:
            action = read(played.game, turn.response, step.state, step.player)
            decided = decided or action
            if unreadable is None:
                own["changed"] += action != done.action
            elif action is not None:
                own["read"] += 1
                if losses is not None:
                    values = losses.values(step, request, action)
                    lost, best = value_lost(replace(step, action=action), values), max(values.values())
                    own["valued"] += 1
                    own["optimal"] += lost <= TIE
                    if request.legal_actions:
                        good = sum(value >= best - TIE for value in values.values())
                        own["chance"] += good / len(request.legal_actions)
                    own["lost"] += lost
        if (decided is None and not done.valid) or decided == done.action or first not in (None, step.index):
            continue
        first = step.index
        own["diverged"], own["round"] = 1, 1 + step.index
        if losses is not None and decided is not None:
            values = losses.values(step, request, decided, step.action)
            own["known"], own["executed"] = 1, value_lost(step, values)
            own["decided"] = value_lost(replace(step, action=decided), values)
    return found


def reading_rows(results: ResultColumns, agents: Sequence[str], reading: Reading = "lenient") -> list[ReadingView]:
    """Make a row for each of ``agents`` in every scenario in which it gave an unreadable answer; strictly, in all."""
    wanted = {
        key: cell
        for key, cell in results.cells.items()
        if key[0] in agents and cell.episodes and (reading == "strict" or any(cell.columns["invalid"]))
    }
    found: dict[tuple[str, str], list[tuple[int, Counts]]] = {key: [] for key in wanted}
    for source, names in enumerate(results.names):
        folder = RunFolder(*results.sources[source])
        cache = FolderCache(folder, "score/move_losses.py", Path(__file__))
        told: dict[str, RecordCache[dict[str, Counts]]] = {}
        for name in {name for agent, name in wanted if agent in names.values()} & folder.manifest["scenarios"].keys():
            scenario, losses = results.scenarios[name], losses_in(results, name)
            compute = partial(read_again, scenario=scenario, reading=reading, losses=losses)
            told[name] = RecordCache(compute, cache.file("readings", scenario, f" {reading}"))
        for _, record in records_of(results, source, told):
            counts = told[record.scenario].of(record) or {}
            for player, agent in record.agents.items():
                if player in counts and (names.get(agent), record.scenario) in found:
                    found[names[agent], record.scenario].append((record.seed, counts[player]))
        for kept in told.values():
            kept.keep()
    keys = [(agent, name) for name in results.scenarios for agent in agents if (agent, name) in wanted]
    return [_row(*key, reading, found[key], wanted[key]) for key in keys]


def _row(agent: str, name: str, reading: Reading, known: Sequence[tuple[int, Counts]], cell: Cell) -> ReadingView:
    columns = {"seed": [float(seed) for seed, _ in known]} | {key: [own[key] for _, own in known] for key in COUNTED}
    total = {key: sum(columns[key]) for key in COUNTED}
    table = np.stack(columns_per_seed(columns), axis=1) if known else np.zeros((1, 1 + len(COUNTED)))

    def share(key: str, of: str) -> EstimateView | None:
        statistic = stats.share(1 + COUNTED.index(key), 1 + COUNTED.index(of))
        return to_view(stats.bootstrap(table, [statistic], cell.confidence)[0]) if total[of] else None

    def mean(key: str, of: str) -> float | None:
        return total[key] / total[of] if total[of] else None

    return ReadingView(
        agent=agent,
        scenario=name,
        reading=reading,
        episodes=len(known),
        unknown=cell.episodes - len(known),
        counts={key: int(total[key]) for key in COUNTED if key not in SUMS},
        invalid=share("invalid", "answers"),
        read=share("read", "invalid"),
        optimal=share("optimal", "valued"),
        chance=mean("chance", "valued") or None,
        lost=mean("lost", "valued"),
        first_round=mean("round", "diverged"),
        lost_executed=mean("executed", "known"),
        lost_decided=mean("decided", "known"),
    )
