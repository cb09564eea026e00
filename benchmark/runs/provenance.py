"""Where a result comes from: the code's version and commit, the packages, the time, fingerprints of files and data."""

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from json import dumps
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError

PACKAGES = ("gymnasium", "pettingzoo", "numpy", "scipy", "openai", "torch", "transformers", "vllm")
"""Whose versions may matter to a result."""


def now() -> str:
    """Return the time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@cache  # each is read from a whole file of metadata
def package_versions() -> Mapping[str, str]:
    """Return the versions of the installed packages among :data:`PACKAGES`."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@cache
def code_version() -> Mapping[str, Any]:
    """Return ``version``, and in a checkout ``commit`` and ``dirty`` (its code has uncommitted changes)."""
    try:
        release = version("textbench")
    except PackageNotFoundError:
        release = "unknown"
    folder = Path(__file__).parents[1]
    commit = _git(folder, "rev-parse", "HEAD")
    # Only a checkout of this project: a wheel may be installed somewhere below a stranger's repository.
    if commit is None or _git(folder, "ls-files", "--error-unmatch", __file__) is None:
        return {"version": release, "commit": None, "dirty": None}
    code = [folder.parent / name for name in ("textgames", "agents", "benchmark")]  # an edited README changes no result
    dirty = bool(_git(folder, "status", "--porcelain", "--untracked-files=no", "--", *code))
    return {"version": release, "commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str | Path) -> str | None:
    """Return a git command's output; ``None`` if there is no git or no repository."""
    command = ["git", "-C", folder, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def file_digest(file: str) -> str:
    """Return a short fingerprint of a file's content; raises a UsageError if it can't be read."""
    try:
        return sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise UsageError(f"can't read {file}: {error.strerror}") from None


def data_digest(data: Any) -> str:
    """Return a short fingerprint of plain data."""
    return sha256(dumps(data, sort_keys=True, default=str).encode()).hexdigest()[:16]
