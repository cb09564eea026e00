"""What the moves of a game for two cost: the value lost per move against exact play, from the replayed states.

In a game of two with opposed interests who take turns and see everything, the yardstick of the game knows the value of
every move against the best replies. What a move is worth less than the best one is what its player gave away with it,
whatever the opponent then made of it. So this figure tells strong players apart whose games all end in draws.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmark.runs.folder import RunFolder
from benchmark.runs.record import Record
from benchmark.runs.replay import ReplayError, replay, shows_what_was_seen
from benchmark.score.cache import FolderCache, read_cache, write_cache
from textgames.scenarios import Scenario
from textgames.yardsticks import Yardstick, find_yardstick

VALUE_LOST = "value lost per move"
"""The name of the metric: the mean over an episode's moves of ``value of the best move - value of the move``."""

LIMIT = 5000
"""The most episodes of one scenario that are played again for it."""

KEPT_POSITIONS = 50_000  # whose values are at hand: openings are alike in many games


class MoveLosses:
    """Tells the metric of the records of one scenario."""

    def __init__(self, scenario: Scenario, yardstick: Yardstick) -> None:
        self.scenario = scenario
        self._values = lru_cache(maxsize=KEPT_POSITIONS)(yardstick.values)
        self._left = LIMIT

    @classmethod
    def of(cls, scenario: Scenario) -> "MoveLosses | None":
        """``None`` where the scenario isn't such a game, or has no exact values."""
        game = scenario.game()
        if len(game.players) != 2 or not game.takes_turns or not game.reads_observations:
            return None
        yardstick = find_yardstick(game)
        return cls(scenario, yardstick) if yardstick is not None and yardstick.exact else None

    def of_record(self, record: Record) -> dict[str, float] | None:
        """``{player: value lost per move}``; empty for a record that isn't any more what the game makes of it.

        ``None`` after :data:`LIMIT` records.
        """
        if not self._left:
            return None
        self._left -= 1
        try:
            played = replay(record, self.scenario, boards=False)
        except ReplayError:
            return {}
        if not shows_what_was_seen(played, record):
            return {}
        lost: dict[str, list[float]] = {}
        for step in played.steps:
            if step.action:
                values = self._values(played.states[step.round], step.steps_left, step.player)
                lost.setdefault(step.player, []).append(max(values.values()) - values[step.action])
        return {player: sum(losses) / len(losses) for player, losses in lost.items()}


class FolderLosses:
    """Puts the metric into the records of one folder in one scenario.

    Episodes are played again for it once: what came of them is kept in the cache, as their luck is.
    """

    def __init__(self, losses: MoveLosses, file: Path | None) -> None:
        self._losses, self._file = losses, file
        self._known = read_cache(file, _of_json) or {}
        self._changed = False

    def add_to(self, record: Record) -> None:
        """Put the metric into a record that was scored."""
        if record["error"] is not None:
            return
        episode = json.dumps([record["seed"], record["agents"]])
        if episode not in self._known:
            told = self._losses.of_record(record)
            if told is None:
                return
            self._known[episode], self._changed = told, True
        metrics = record.setdefault("metrics", {})
        for player, lost in self._known[episode].items():
            metrics[player] = {**metrics.get(player, {}), VALUE_LOST: lost}

    def keep(self) -> None:
        """Write what was worked out, when all records have been there."""
        if self._changed:
            write_cache(self._file, self._known)


def folder_losses(told: Mapping[str, MoveLosses], folder: RunFolder) -> dict[str, FolderLosses]:
    """What puts the metric into the records of a folder, by scenario."""
    cache = FolderCache(folder, "score/move_losses.py")
    return {name: FolderLosses(losses, cache.file("losses", losses.scenario)) for name, losses in told.items()}


def _of_json(kept: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """``{episode: {player: loss}}`` as :class:`FolderLosses` keeps it."""
    return {episode: {player: float(value) for player, value in lost.items()} for episode, lost in kept.items()}
