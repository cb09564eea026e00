"""What is computed once and kept between commands: in the user's cache folder, by the source code it depends on."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from agents.baselines.search import find_search_player
from agents.files import cache_folder, replacing
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import is_final
from benchmark.runs.plan import scenario_to_json
from textgames.scenarios import Scenario
from textgames.yardsticks import find_yardstick

Kept = TypeVar("Kept")

PLAYING = (("textgames", "**/*.py"), ("agents", "*.py"), ("agents", "baselines/*.py"), ("agents", "loop/*.py"))
"""The rules, the scripted players and the loop: whatever decides the returns of the reference agents."""


def cache_file(name: str, scenario: Scenario, about: str = "") -> Path | None:
    """Where what was computed for a scenario is kept: changed settings or changed source code are another file.

    ``name`` says what it is (the agent whose returns are kept), ``about`` what else it depends on. ``None`` where the
    game, its yardstick or its search player was typed into a notebook: then nothing tells whether it has changed.
    """
    game = scenario.game()
    own = _own_sources(
        cls for one in (game, find_search_player(game), find_yardstick(game)) for cls in type(one).__mro__
    )
    if own is None:
        return None
    data = scenario_to_json(scenario)
    settings = json.dumps([data[name] for name in ("env_id", "kwargs", "horizon")], sort_keys=True)
    digest = hashlib.sha256(f"{_playing_digest()} {sources_digest(own)} {name}{about} {settings}".encode())
    return cache_folder() / f"{name}-{digest.hexdigest()[:24]}.json"


class FolderCache:
    """Where what replays of a folder's episodes tell is kept: changed episodes or changed code are another file.

    Of a run that is being played nothing is kept, since its episodes change all the time.

    Args:
        folder: whose episodes are played again.
        code: a pattern below the package ``benchmark``: the files that compute something of the replays.
    """

    def __init__(self, folder: RunFolder, code: str) -> None:
        self._folder, self._code = folder, code

    def file(self, name: str, scenario: Scenario, about: str = "") -> Path | None:
        """:func:`cache_file` for these episodes in a scenario; ``None`` where nothing is kept."""
        return cache_file(name, scenario, f" {self._digest}{about}") if is_final(self._folder.manifest) else None

    @cached_property
    def _digest(self) -> str:
        own = Path(str(files("benchmark")))
        code = sources_digest([own / "runs" / "replay.py", *sorted(own.glob(self._code))])
        with self._folder.episodes_path.open("rb") as lines:
            return f"{hashlib.file_digest(lines, 'sha256').hexdigest()} {code}"


def read_cache(file: Path | None, parse: Callable[[Any], Kept]) -> Kept | None:
    """What is kept, as ``parse`` makes it of the JSON; ``None`` where nothing is, or nothing that can be read."""
    try:
        return None if file is None else parse(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError):  # absent or damaged: it is only a cache
        return None


def write_cache(file: Path | None, values: Mapping[Any, Any]) -> None:
    """Keep values as JSON, where they can be kept."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            json.dump(values, stream)
    except OSError:
        pass  # a home that can't be written costs time, nothing else


@cache
def _playing_digest() -> str:
    """The fingerprint of :data:`PLAYING`, as it was when this process first asked."""
    return sources_digest(
        file for package, pattern in PLAYING for file in sorted(Path(str(files(package))).glob(pattern))
    )


def _own_sources(classes: Iterable[type]) -> tuple[Path, ...] | None:
    """The files of a user's own game and search player: their whole package, or what lies beside a lone file."""
    found: set[Path] = set()
    for cls in classes:
        package = cls.__module__.partition(".")[0]
        if package in ("textgames", "agents", *sys.stdlib_module_names):
            continue
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if file is None:
            return None
        start = getattr(sys.modules.get(package), "__file__", None)
        in_package = start is not None and Path(start).name == "__init__.py"
        found.update(Path(start).parent.rglob("*.py") if start and in_package else Path(file).parent.glob("*.py"))
    return tuple(sorted(found))


def sources_digest(paths: Iterable[Path]) -> str:
    """A fingerprint of source files."""
    return _digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=64)
def _digest(sources: tuple[tuple[Path, int, int], ...]) -> str:
    """The fingerprint of files with their sizes and times: a board of many entries asks for the same ones often."""
    digest = hashlib.sha256()
    for path, size, _ in sources:
        digest.update(f"{path.name} {size}\n".encode() + path.read_bytes())
    return digest.hexdigest()
