"""A page of runs that are still being played: made again when an episode has come, and not so often that it slows them.

``stat of the files -> changed? -> read -> document -> page``.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from benchmark.errors import StorageError, UsageError
from benchmark.runs.folder import EPISODES_NAME
from benchmark.runs.manifest import MANIFEST_NAME, is_final, read_manifest
from benchmark.score.results import expand_sources

LOOK_EVERY = 1.0  # seconds between two looks at the files
SHARE = 0.2
"""At most this share of the time goes into making pages, since the run needs the processor, too."""


def pages_of(
    sources: Sequence[str | Path],
    make: Callable[[str], tuple[str, bool]],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[tuple[str, str]]:
    """Yield (text, version) of the page of these sources, and again after every change, until they are complete.

    ``make(version)`` makes the page and tells whether the sources are complete. A UsageError is raised for the first
    page alone; later ones are tried again.
    """
    version, complete = "", False
    while not complete:
        now = state_of(sources)
        took = 0.0
        if now != version:
            started = clock()
            try:
                page, complete = make(now)
            except (UsageError, StorageError):  # a file that is being written may be unreadable for a moment
                if not version:
                    raise
            else:
                version = now
                yield page, version
            took = clock() - started
        waited = 0.0
        while not complete and waited < max(LOOK_EVERY, took * (1 - SHARE) / SHARE):
            if waited and state_of(sources) != version:
                with suppress(UsageError):  # a manifest that is being written
                    if all(is_final(read_manifest(folder)) for folder in expand_sources(sources)):
                        break  # no source is being played any more: the last page comes at once
            sleep(LOOK_EVERY)
            waited += LOOK_EVERY


def state_of(sources: Sequence[str | Path]) -> str:
    """Return a name for what the sources hold now: another one after every episode that is written."""
    parts = []
    for folder in expand_sources(sources):
        for name in (MANIFEST_NAME, EPISODES_NAME):
            file = folder / name
            status = file.stat() if file.exists() else None
            parts.append((str(file), status and (status.st_size, status.st_mtime_ns)))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
