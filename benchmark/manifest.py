"""What a run's manifest says: what was asked for, of whom, with which versions, when.

No score without where it came from. Nothing here identifies the machine's owner, and no credential ever gets in.
"""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from json import dumps
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError
from benchmark.options import COUNTING, OPERATING, RunOptions
from benchmark.plan import Plan
from benchmark.prices import Price
from benchmark.redaction import public_url
from benchmark.store import MANIFEST_VERSION, RUN_KIND, Manifest

PACKAGES = ("gymnasium", "pettingzoo", "numpy", "scipy", "openai", "torch", "transformers", "vllm")
"""Whose versions may matter to a result."""


def new_manifest(
    options: RunOptions, plan: Plan, cards: Sequence[Mapping[str, Any]], prices: Mapping[str, Price]
) -> Manifest:
    """The manifest of a run that is about to start.

    Args:
        options: all options; those that count become ``settings``, the others ``operation``.
        plan: what is to be played.
        cards: one per agent, ``name spec kind settings``.
        prices: ``{agent: price}`` of those that have one.
    """
    return {
        "schema_version": MANIFEST_VERSION,
        "kind": RUN_KIND,
        "textbench": code_version(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": package_versions(),
        "settings": counting_settings(options),
        "operation": {name: getattr(options, name) for name in OPERATING if name not in ("out", "cache")},
        "agents": [dict(card) for card in cards],
        "prices": dict(prices),
        **plan.to_json(),
        "sessions": [],
    }


def counting_settings(options: RunOptions) -> dict[str, Any]:
    """The options that decide what is played, as plain JSON; of the server's address only what isn't secret."""
    settings = {name: getattr(options, name) for name in COUNTING}
    settings["agents"], settings["scenarios"] = list(options.agents), list(options.scenarios)
    if options.base_url is not None:
        settings["base_url"] = public_url(options.base_url)
    if options.prompts is not None:
        settings["prompts"] = f"sha256 {file_digest(options.prompts)}"
    return settings


def check_same_settings(path: Path, old: Manifest, new: Manifest) -> None:
    """Refuse to go on in a folder that was made with something else.

    Raises:
        UsageError: names the first setting that differs, with the old and the new value.
    """
    again = f"go on with the old settings: textbench resume {path}"
    restore = "put back what it was made with, and go on"
    scenarios = [(f"scenario {name}", old["scenarios"].get(name), one) for name, one in new["scenarios"].items()]
    for title, before, after, advice in (
        ("textbench version", old["textbench"]["version"], new["textbench"]["version"], restore),
        *((name, old["settings"].get(name), value, again) for name, value in new["settings"].items()),
        *((*difference, restore) for difference in (*scenarios, *_agent_differences(old, new))),
    ):
        if before != after:
            title, before, after = _innermost(title, before, after)
            raise UsageError(
                f"{path} was made with {title} = {before!r}, now it is {after!r}; choose another --out, or {advice}"
            )


def _innermost(title: str, before: Any, after: Any) -> tuple[str, Any, Any]:
    """The first difference inside two unequal values: a person shouldn't have to compare two whole mappings."""
    while isinstance(before, Mapping) and isinstance(after, Mapping):
        name = next(name for name in (*after, *before) if before.get(name) != after.get(name))
        title, before, after = f"{title}, {name}", before.get(name), after.get(name)
    return title, before, after


def _agent_differences(old: Manifest, new: Manifest) -> list[tuple[str, Any, Any]]:
    before = {card["name"]: card for card in old["agents"]}
    return [
        (f"{name} of agent {card['name']}", before.get(card["name"], {}).get(name), value)
        for card in new["agents"]
        for name, value in card.items()
    ]


def start_session(manifest: Manifest) -> None:
    """Note that a process starts to play, with its code and the time."""
    manifest["sessions"].append({"started": now(), "finished": None, **code_version()})


def finish_session(manifest: Manifest, outcome: str) -> None:
    """Note that it ended, and how."""
    manifest["sessions"][-1] |= {"finished": now(), "outcome": outcome}


def now() -> str:
    """The time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def package_versions() -> dict[str, str]:
    """Versions of the installed packages among :data:`PACKAGES`."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def _code_version() -> tuple[str, str | None, bool | None]:
    try:
        release = version("textbench")
    except PackageNotFoundError:
        release = "unknown"
    folder = Path(__file__).parent
    commit = _git(folder, "rev-parse", "HEAD")
    # Only a checkout of this project: a wheel may be installed somewhere below a stranger's repository.
    if commit is None or _git(folder, "ls-files", "--error-unmatch", __file__) is None:
        return release, None, None
    code = [folder.parent / name for name in ("textgames", "agents", "benchmark")]  # an edited README changes no result
    return release, commit, bool(_git(folder, "status", "--porcelain", "--untracked-files=no", "--", *code))


def code_version() -> dict[str, Any]:
    """``version``, and where it runs from a checkout ``commit`` and ``dirty`` (its code has uncommitted changes)."""
    release, commit, dirty = _code_version()
    return {"version": release, "commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str | Path) -> str | None:
    """A git command's output; ``None`` where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def file_digest(file: str) -> str:
    """A short fingerprint of a file's content.

    Raises:
        UsageError: it can't be read.
    """
    try:
        return sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise UsageError(f"can't read {file}: {error.strerror}") from None


def data_digest(data: Any) -> str:
    """A short fingerprint of plain data."""
    return sha256(dumps(data, sort_keys=True, default=str).encode()).hexdigest()[:16]
