"""Files of the cache (:mod:`textgames.cache`) for what is computed of a scenario or of the episodes of a folder."""

import json
from collections.abc import Callable
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Generic, TypeVar

from agents.baselines.search import find_search_player
from agents.episode import Episode
from benchmark.errors import StorageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import is_final
from benchmark.runs.plan import scenario_to_json
from textgames.cache import cache_folder, kept_file, read_cache, sources_digest, write_cache
from textgames.scenarios import Scenario
from textgames.yardsticks import find_yardstick

__all__ = ["FolderCache", "RecordCache", "cache_file", "cache_folder", "read_cache", "write_cache"]

Kept = TypeVar("Kept")

PLAYING = (("textgames", "**/*.py"), ("agents", "*.py"), ("agents", "baselines/*.py"), ("agents", "loop/*.py"))
"""The rules, the scripted players and the loop: whatever decides the returns of the reference agents."""


def cache_file(name: str, scenario: Scenario, about: str = "") -> Path | None:
    """Return the file for what is computed of a scenario, by its settings and the source code.

    ``None`` if the game, its yardstick or its search player was typed into a notebook: its source may have changed.
    """
    game = scenario.game()
    classes = [cls for one in (game, find_search_player(game), find_yardstick(game)) for cls in type(one).__mro__]
    data = scenario_to_json(scenario)
    settings = json.dumps([data[name] for name in ("env_id", "kwargs", "horizon")], sort_keys=True)
    return kept_file(name, _playing_digest(), classes, f"{about} {settings}")


class FolderCache:
    """Files for what replays of a folder's episodes tell: changed episodes or changed code are another file.

    Nothing is kept of a run that is being played. ``code``, a pattern below ``benchmark``, and ``more`` compute it.
    """

    def __init__(self, folder: RunFolder, code: str, *more: Path) -> None:
        self._folder, self._code, self._more = folder, code, more

    def file(self, name: str, scenario: Scenario, about: str = "") -> Path | None:
        """:func:`cache_file` for these episodes in a scenario; ``None`` if nothing is kept."""
        return cache_file(name, scenario, f" {self._digest}{about}") if is_final(self._folder.manifest) else None

    @cached_property
    def _digest(self) -> str:
        own, episodes = Path(str(files("benchmark"))), self._folder.episodes_path
        code = sources_digest([own / "runs" / "replay.py", *sorted(own.glob(self._code)), *self._more])
        try:
            return f"{sources_digest([episodes])} {code}"
        except OSError as error:
            raise StorageError(f"can't read {episodes}: {error.strerror}") from None


class RecordCache(Generic[Kept]):
    """Values that are computed of each scored record of a folder in one scenario, kept in a file."""

    def __init__(self, compute: Callable[[Episode], Kept | None], file: Path | None) -> None:
        """``compute`` returns plain JSON, or ``None`` for what isn't to be kept."""
        self._compute, self._file, self._changed = compute, file, False
        self._known: dict[str, Kept] = read_cache(file, dict) or {}

    def of(self, record: Episode) -> Kept | None:
        """Return what a record gives; ``None`` if it wasn't scored."""
        key = json.dumps([record.seed, record.agents])
        if key not in self._known and record.error is None and (found := self._compute(record)) is not None:
            self._known[key], self._changed = found, True
        return self._known.get(key)

    def keep(self) -> None:
        if self._changed:
            write_cache(self._file, self._known)


@cache
def _playing_digest() -> str:
    """Return the fingerprint of :data:`PLAYING`, as it was when this process first asked."""
    return sources_digest(
        file for package, pattern in PLAYING for file in sorted(Path(str(files(package))).glob(pattern))
    )
