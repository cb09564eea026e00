"""The luck in the episodes of a run folder, computed from their replays once and then kept in the cache.

Records hold no states, so every episode is played again (the rules only, some 0.5 ms an episode of Frozen Lake). The
figures are kept by the digest of the episodes' file and of the source code, as reference values are.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import Manifest, is_final
from benchmark.runs.record import Record
from benchmark.runs.replay import ReplayError, replay
from benchmark.score.cache import cache_file, episodes_digest, write_cache
from benchmark.score.luck.terms import EpisodeLuck, LuckValues, episode_luck
from textgames.scenarios import Scenario

SeedLuck = Mapping[int, EpisodeLuck]
"""The luck of one agent's episodes in one scenario, by seed."""


class FolderLuck:
    """Looks up the luck of one run folder's or entry's episodes; it is computed when it is first asked for."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path, self._manifest = path, manifest
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
            values = LuckValues.of(scenario.game())
            if values is None or not (values.exact or is_final(self._manifest)):
                return None  # a run that is being played is looked at again and again, and heuristics take long
            if values.exact not in self._known:
                self._known[values.exact] = self._look_up(values.exact)
            return self._known[values.exact].get(scenario.name, {}).get(agent)

        return ask

    def _look_up(self, exact: bool) -> dict[str, dict[str, SeedLuck | None]]:
        offered = {name: LuckValues.of(scenario.game()) for name, scenario in self._scenarios.items()}
        known: dict[str, dict[str, SeedLuck | None]] = {}
        missing: dict[str, LuckValues] = {}
        cached: dict[str, Path | None] = {}
        for name, values in offered.items():
            if values is None or values.exact != exact:
                continue
            cached[name] = cache_file("luck", self._scenarios[name], f" {self._digest} {values.name}")
            kept = _read(cached[name])
            if kept is None:
                missing[name] = values
            else:
                known[name] = kept
        if missing:
            for name, luck in self._compute(missing).items():
                known[name] = luck
                if is_final(self._manifest):
                    write_cache(cached[name], luck)
        return known

    def _compute(self, offered: Mapping[str, LuckValues]) -> dict[str, dict[str, SeedLuck | None]]:
        found: dict[str, dict[str, Any]] = {name: {} for name in offered}
        for record in RunFolder(self._path, self._manifest).records():
            values = offered.get(record["scenario"])
            if values is None or record["error"] is not None:
                continue
            (agent,) = record["agents"].values()
            luck = record_luck(record, self._scenarios[record["scenario"]], values)
            seeds = found[record["scenario"]].setdefault(agent, {})
            if luck is None:
                found[record["scenario"]][agent] = None
            elif seeds is not None:
                seeds[record["seed"]] = luck
        return found

    @cached_property
    def _digest(self) -> str:
        own = Path(str(files("benchmark")))
        code = [own / "runs" / "replay.py", *sorted((own / "score" / "luck").glob("*.py"))]
        return episodes_digest(RunFolder(self._path, self._manifest), code)


def record_luck(record: Record, scenario: Scenario, values: LuckValues) -> EpisodeLuck | None:
    """The luck of one recorded episode; ``None`` where it doesn't replay to what is on record."""
    try:
        played = replay(record, scenario, boards=False)
    except ReplayError:
        return None
    if not played.end.over or played.end.returns != record["returns"]:
        return None
    return episode_luck(played, values)


def _read(file: Path | None) -> dict[str, SeedLuck | None] | None:
    """What the cache has; ``None`` where it has nothing that can be read."""
    try:
        kept = None if file is None else json.loads(file.read_bytes())
        return kept and {
            agent: seeds and {int(seed): EpisodeLuck(*row) for seed, row in seeds.items()}
            for agent, seeds in kept.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
