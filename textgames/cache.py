"""Values that are computed once and kept between commands in :func:`cache_folder`; none is ever needed."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

Kept = TypeVar("Kept")


def cache_folder() -> Path:
    """Return ``TEXTBENCH_CACHE_DIR``, or ``textbench`` in the user's cache folder."""
    given = os.environ.get("TEXTBENCH_CACHE_DIR")
    if given:
        return Path(given)
    from platformdirs import user_cache_path  # here: the games install without it

    return user_cache_path("textbench")


def read_cache(file: Path | None, parse: Callable[[Any], Kept]) -> Kept | None:
    """Return what is kept, as ``parse`` makes it of the JSON; ``None`` if nothing that can be read is."""
    try:
        return None if file is None else parse(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError):  # absent or damaged: it is only a cache
        return None


def write_cache(file: Path | None, values: Mapping[Any, Any]) -> None:
    """Keep values as JSON, if they can be kept."""
    if file is None:
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}")  # renamed when it is whole: others may be reading
    with suppress(OSError):  # a home that can't be written costs time, nothing else
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps(values), encoding="utf-8")
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)  # of a disk that is full


def kept_file(name: str, code: str, classes: Iterable[type], about: str) -> Path | None:
    """Return the file for what is computed by these classes and our own ``code``, as :func:`sources_digest` tells it.

    ``None`` if a class was typed into a notebook, as its source may have changed, or if there is no folder for it.
    """
    try:
        folder, own = cache_folder(), own_sources(classes)
    except ModuleNotFoundError:  # platformdirs, which the games alone don't bring: nothing is kept
        return None
    if own is None:
        return None
    digest = hashlib.sha256(f"{code} {sources_digest(own)} {about}".encode()).hexdigest()
    return folder / f"{name}-{digest[:24]}.json"


def own_sources(classes: Iterable[type]) -> tuple[Path, ...] | None:
    """Return the files of a user's own game and search player: their whole package, or what lies beside a lone file."""
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
    """Return a fingerprint of files, such as those of source code; an OSError if one can't be read."""
    return _digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=64)
def _digest(sources: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, size, _ in sources:
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()
