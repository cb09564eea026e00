"""What the story of a twin costs by changing a move: the value lost there, less what the game's own move lost.

An episode of a seed begins in the same state in a game and in its twin, and meets the same chances. At decisions that
both make in the same state with as many moves left, if values are exact, what the twin's move loses more is the story's
doing or that of the player's own sampling, and the latter makes as much on average in either direction. The rest of the
twin gap was lost in states that only one of the two episodes came to.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmark.runs import RunFolder
from benchmark.score import Decision, FolderCache, ResultColumns, read_cache, solo_losses, write_cache
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
    """Return the decisions in equal states; the twin's with the game's name of its action."""
    told = scenario.game()
    assert isinstance(told, Twin)
    return [
        (game[state], decision._replace(action=told.own_action(decision.action) if decision.action else ""))
        for state, decision in twin.items()
        if state in game
    ]
