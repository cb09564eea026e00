"""What a run's manifest says: what was asked for, of whom, with which versions, when.

No score without where it came from. Nothing here identifies the machine's owner, and no credential ever gets in.
"""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import UsageError
from benchmark.play.options import COUNTING, OPERATING, RunOptions
from benchmark.runs.folder import MANIFEST_VERSION, RUN_KIND, Manifest
from benchmark.runs.plan import Plan
from benchmark.runs.provenance import code_version, file_digest, now, package_versions
from benchmark.runs.redaction import public_url
from benchmark.score.prices import Price


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
