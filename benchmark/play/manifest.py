"""Making a run's manifest: what was asked for, of whom, with which versions, when; and resuming an older one.

Nothing here identifies the machine's owner, and no credential ever gets in.
"""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.common.redaction import public_url
from benchmark.errors import UsageError
from benchmark.play.agents.options import is_object, stored
from benchmark.play.options import ADDED, COUNTING, OPERATING, RunOptions
from benchmark.runs.folder import resume_command
from benchmark.runs.manifest import MANIFEST_VERSION, RUN_KIND, Manifest, Price
from benchmark.runs.plan import Plan
from benchmark.runs.provenance import code_version, file_digest, package_versions


def new_manifest(
    options: RunOptions, plan: Plan, cards: Sequence[Mapping[str, Any]], prices: Mapping[str, Price]
) -> Manifest:
    """Return the manifest of a run that is about to start.

    The options that count become ``settings`` (without the secrets of a server's address), the others ``operation``.
    """
    settings = {name: getattr(options, name) for name in COUNTING}
    settings = {name: value for name, value in settings.items() if name not in ADDED or value is not None}
    settings["agents"], settings["scenarios"] = list(options.agents), list(options.scenarios)
    operation = {name: getattr(options, name) for name in OPERATING if name != "out"}
    for part, own in zip((settings, operation), stored(options.agent_options), strict=True):
        part.pop("agent_options", None)
        if own is not None:
            part["agent_options"] = own
    if options.base_url is not None:
        settings["base_url"] = public_url(options.base_url)
    if options.prompts is not None:
        settings["prompts"] = f"sha256 {file_digest(options.prompts)}"
    return {
        "schema_version": MANIFEST_VERSION,
        "kind": RUN_KIND,
        "textbench": dict(code_version()),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": dict(package_versions()),
        "settings": settings,
        "operation": operation,
        "agents": [dict(card) for card in cards],
        "prices": dict(prices),
        **plan.to_json(),
        "sessions": [],
    }


def take_over(path: Path, old: Manifest, new: Manifest, *, unplayed: bool = False) -> None:
    """Turn the manifest of a folder into the one that would be made now: more episodes, new prices, nothing else.

    If nothing was played yet, ``unplayed``, the agents may have become other ones too, as a player that raised at once
    may have been mended.
    """
    of_a_program = any(is_object(card["spec"]) for card in old["agents"])
    again = "call it with the old settings" if of_a_program else f"go on with the old settings: {resume_command(path)}"
    restore = "put back what it was made with, and go on"
    differences: list[tuple[str, Any, Any, str]]
    differences = [("textbench version", old["textbench"]["version"], new["textbench"]["version"], restore)]
    names = [*new["settings"], *(name for name in ADDED if name in old["settings"] and name not in new["settings"])]
    names.remove("episodes")  # which may grow
    differences += [(name, old["settings"].get(name), new["settings"].get(name), again) for name in names]
    differences += [
        (f"scenario {name}", old["scenarios"].get(name), one, restore) for name, one in new["scenarios"].items()
    ]
    cards = {card["name"]: card for card in old["agents"]}
    for card in () if unplayed else new["agents"]:
        past, present = _compared(cards.get(card["name"], {}), card), _compared(card, cards.get(card["name"], {}))
        whose = f"of agent {card['name']}"
        differences += [(f"{name} {whose}", past.get(name), present[name], restore) for name in present]
    for title, before, after, advice in differences:
        if before == after:
            continue
        title, before, after = innermost(title, before, after)
        if ", code, " in title:
            whose = title.removeprefix("settings of ").replace(", code,", ", whose class")
            raise UsageError(
                f"{path} has episodes of the {whose} has another source now; play it into another folder, or put "
                "the old source back"
            )
        before, after = ("not given" if value is None else repr(value) for value in (before, after))
        raise UsageError(
            f"{path} was made with {title} = {before}, now it is {after}; choose another --out, or {advice}"
        )
    _extend(path, old, new, again)
    old["agents"] = [dict(card) for card in new["agents"]] if unplayed else old["agents"]
    old["prices"] = {**old.get("prices", {}), **new["prices"]}


def _compared(card: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card without the count of weights, which their digest implies, or a tokenizer that the other lacks."""
    left_out = {"model_parameters"} | ({"model_tokenizer"} - set(other.get("settings", {})))
    settings = {name: value for name, value in card.get("settings", {}).items() if name not in left_out}
    return {**card, "settings": settings}


def _extend(path: Path, old: Manifest, new: Manifest, again: str) -> None:
    """Take over a larger number of episodes; every seed of before stays."""
    before, after = old["settings"].get("episodes", 0), new["settings"]["episodes"]
    if after == before:
        return
    if after < before:
        raise UsageError(
            f"{path} has {before} episodes of every scenario, and {after} would drop some of them; "
            f"ask for more, choose another --out, or {again}"
        )
    if "season" in old:
        name = old["season"]["name"]
        raise UsageError(f"{path} is of the season {name!r}, which has {before} episodes; play more into another --out")
    if old["settings"].get("until") is not None:  # the plan grows while it is played
        old["settings"]["episodes"], old["extended"] = after, [*old.get("extended", []), before]
        return
    kept, planned = Plan.from_manifest(old).seeds, Plan.from_manifest(new).seeds
    if kept.keys() != planned.keys() or any(not set(kept[matchup]) <= set(planned[matchup]) for matchup in kept):
        raise UsageError(
            f"{path} was merged of runs with different seeds or agents, so it can't be extended itself; "
            "extend those runs, and merge them again"
        )
    old["settings"]["episodes"], old["matchups"] = after, new["matchups"]


def innermost(title: str, before: Any, after: Any) -> tuple[str, Any, Any]:
    """Return the first difference inside two unequal values: a person shouldn't have to compare two whole mappings."""
    while isinstance(before, Mapping) and isinstance(after, Mapping):
        # a value of None is another one than none at all
        name = next(name for name in (*after, *before) if before.get(name, ...) != after.get(name, ...))
        title, before, after = f"{title}, {name}", before.get(name), after.get(name)
    return title, before, after
