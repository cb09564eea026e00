"""The luck in the episodes of a run folder, computed from their replays once and then kept in the cache.

Records hold no states, so every episode is played again (the rules only, some 0.5 ms an episode of Frozen Lake). The
figures are kept by the digest of the episodes' file and of the source code, as reference values are.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import MOST_SOLVED, is_final
from benchmark.runs.record import Key, Record, key_of
from benchmark.runs.replay import ReplayError, replay
from benchmark.score.cache import FolderCache, read_cache, write_cache
from benchmark.score.luck.terms import EpisodeLuck, LuckValues, episode_luck
from textgames.scenarios import Scenario

SeedLuck = Mapping[int, EpisodeLuck]
"""The luck of one agent's episodes in one scenario, by seed."""


ToldLuck = dict[Key, EpisodeLuck | None]
"""The luck of single episodes; ``None`` where it can't be told."""


class FolderLuck:
    """Looks up the luck of one run folder's or entry's episodes; it is computed when it is first asked for.

    Args:
        folder: the run folder or entry.
        told: the luck of episodes that was computed before, by their keys; is added to.
    """

    def __init__(self, folder: RunFolder, told: ToldLuck | None = None) -> None:
        self._folder, self._cache = folder, FolderCache(folder, "score/luck/*.py")
        self._told: ToldLuck = {} if told is None else told
        self._scenarios: dict[str, Scenario] = {}
        # what exact values tell, and what heuristics tell, which takes longer and is asked for less
        self._known: dict[bool, dict[str, dict[str, SeedLuck | None]]] = {}

    def lookup(self, agent: str, scenario: Scenario) -> Callable[[], SeedLuck | None]:
        """The luck of an agent (by its name in the folder) in a scenario, to be asked for when it is needed.

        The answer is ``None`` where the game offers none, an episode doesn't replay to the return on record, or a
        heuristic would have to tell it while the run is being played.
        """
        self._scenarios[scenario.name] = scenario

        def ask() -> SeedLuck | None:
            values = _values_of(scenario)
            if values is None or not (values.exact or is_final(self._folder.manifest)):
                return None  # a run that is being played is looked at again and again, and heuristics take long
            if values.exact not in self._known:
                self._known[values.exact] = self._look_up(values.exact)
            return self._known[values.exact].get(scenario.name, {}).get(agent)

        return ask

    def _look_up(self, exact: bool) -> dict[str, dict[str, SeedLuck | None]]:
        offered = {name: _values_of(scenario) for name, scenario in self._scenarios.items()}
        known: dict[str, dict[str, SeedLuck | None]] = {}
        missing: dict[str, LuckValues] = {}
        cached: dict[str, Path | None] = {}
        for name, values in offered.items():
            if values is None or values.exact != exact:
                continue
            cached[name] = self._cache.file("luck", self._scenarios[name], f" {values.name}")
            kept = read_cache(cached[name], _of_json)
            if kept is None:
                missing[name] = values
            else:
                known[name] = kept
        if missing:
            for name, luck in self._compute(missing).items():
                known[name] = luck
                write_cache(cached[name], luck)
        return known

    def _compute(self, offered: Mapping[str, LuckValues]) -> dict[str, dict[str, SeedLuck | None]]:
        found: dict[str, dict[str, Any]] = {name: {} for name in offered}
        for record in self._folder.records():
            values = offered.get(record["scenario"])
            if values is None or record["error"] is not None:
                continue
            (agent,) = record["agents"].values()
            key = key_of(record)
            if key not in self._told:
                self._told[key] = record_luck(record, self._scenarios[record["scenario"]], values)
            luck = self._told[key]
            seeds = found[record["scenario"]].setdefault(agent, {})
            if luck is None:
                found[record["scenario"]][agent] = None
            elif seeds is not None:
                seeds[record["seed"]] = luck
        return found


def _values_of(scenario: Scenario) -> LuckValues | None:
    """Return the values that luck is measured by; ``None`` where there are none, or computing them takes too long."""
    return LuckValues.of(scenario.game()) if scenario.horizon <= MOST_SOLVED else None


def record_luck(record: Record, scenario: Scenario, values: LuckValues) -> EpisodeLuck | None:
    """The luck of one recorded episode; ``None`` where it doesn't replay to what is on record."""
    try:
        played = replay(record, scenario, boards=False)
    except ReplayError:
        return None
    if not played.end.over or played.end.returns != record["returns"]:
        return None
    return episode_luck(played, values)


def _of_json(kept: Mapping[str, Any]) -> dict[str, SeedLuck | None]:
    """The luck of one scenario as :class:`FolderLuck` keeps it."""
    return {
        agent: seeds and {int(seed): EpisodeLuck(*row) for seed, row in seeds.items()} for agent, seeds in kept.items()
    }
