"""Merging the runs of several machines into one, episode by episode.

An episode is known by its scenario, its agents and its seed. If several runs have the same one, a scored record goes
before an unscored one, and then the earlier run before the later; conflicting plays (a sampled model's) are counted.
"""

from collections.abc import Sequence
from os.path import realpath
from pathlib import Path
from typing import Any, NamedTuple

from agents.common.reading import read_bytes
from agents.common.redaction import Redactor
from benchmark.errors import UsageError, storing
from benchmark.runs.answers import AnswersFile
from benchmark.runs.folder import PROMPTS_FILES, RunFolder
from benchmark.runs.manifest import OLD_PROTOCOL, RUN_KIND, Manifest
from benchmark.runs.plan import Matchup, Plan
from benchmark.runs.record import Key, canonical_line, key_of


class MergeReport(NamedTuple):
    """What was found when runs were merged."""

    episodes: int  # written
    duplicates: int  # episodes that more than one run had
    conflicts: int  # duplicates that were played differently; the first run's was kept
    missing: int  # planned episodes that have no record


def merge(sources: Sequence[Path], out: Path, redactor: Redactor) -> MergeReport:
    """Write a new run folder with the episodes of all sources.

    A UsageError is raised if they don't belong together, if one is named twice or has a link in place of a file.
    """
    places = [realpath(path) for path in (*sources, out)]
    for position, place in enumerate(places):
        if place in places[:position]:
            what = "--out is one of the runs to merge" if position == len(sources) else "a run is named twice"
            raise UsageError(f"{what}: {place}")
    folders = [RunFolder.open(path) for path in sources]
    manifest = _merged_manifest(folders)
    indices = [folder.index() for folder in folders]
    owner: dict[Key, int] = {}
    for number, index in enumerate(indices):
        for key, (_, scored) in index.items():
            if key not in owner or (scored and not indices[owner[key]][key][1]):
                owner[key] = number
    several = {key for key in owner if sum(key in index for index in indices) > 1}
    plan = Plan.from_manifest(manifest)
    # those of the first run that has them; single agents' prompts are named after their content
    found = [file for path in reversed(sources) for file in sorted(path.glob(PROMPTS_FILES))]
    if links := [file for file in found if file.is_symlink() or not file.is_file()]:
        raise UsageError(f"{links[0]} isn't a file of its folder: a link may lead to anything, and would be copied")
    files = {file.name: read_bytes(file) for file in found}
    with RunFolder.create(out, manifest, redactor, files) as target:
        plays: dict[Key, set[int]] = {}  # of the duplicates
        for number, folder in enumerate(folders):
            for record in folder.records():
                key = key_of(record)
                if key in several and record.error is None:
                    plays.setdefault(key, set()).add(hash(canonical_line(record)))
                if owner[key] == number:
                    target.append(record)
        done = {key for key, number in owner.items() if indices[number][key][1]}
        begun = [AnswersFile(folder.path, redactor, folder.scored, writing=False) for folder in folders]
        AnswersFile(out, redactor).take_over(begun, done)
        with storing(target.episodes_path):
            target.sync()
    conflicts = sum(len(found) > 1 for found in plays.values())
    missing = sum(key not in owner for key in plan.episodes())
    return MergeReport(len(owner), len(several), conflicts, missing)


def _merged_manifest(folders: Sequence[RunFolder]) -> Manifest:
    """Return one manifest for all: the union of agents, scenarios and seeds."""
    first = folders[0].manifest
    agents: dict[str, Any] = {}
    scenarios: dict[str, Any] = {}
    seeds: dict[Matchup, set[int]] = {}
    for folder in folders:
        manifest = folder.manifest
        # looks are planned for one row of seeds: two rows that stopped by themselves are together at none of them
        looking = ("seed_offset",) if first["settings"].get("until") is not None else ()
        for name in ("version", *OLD_PROTOCOL, "resample", "season", "until", *looking):
            ours, theirs = (
                one["textbench"].get(name) or one["settings"].get(name) or one.get(name, "none")
                for one in (manifest, first)
            )
            if ours != theirs:
                raise UsageError(
                    f"{folder.path} was played with {name} {ours}, {folders[0].path} with {theirs}: they can't be one "
                    "run; show them side by side: textbench leaderboard"
                )
        for card in manifest["agents"]:
            if agents.setdefault(card["name"], card) != card:
                raise UsageError(f"{folder.path} has another agent named {card['name']!r} than the runs before it")
        for name, definition in manifest["scenarios"].items():
            if scenarios.setdefault(name, definition) != definition:
                raise UsageError(
                    f"{folder.path} defines another scenario under the name {name!r} than the runs before it"
                )
        for matchup, found in Plan.from_manifest(manifest).seeds.items():
            seeds.setdefault(matchup, set()).update(found)
    plan = Plan.from_manifest({"kind": RUN_KIND, "settings": first["settings"], "scenarios": scenarios, "matchups": []})
    plan = Plan(plan.scenarios, {matchup: sorted(found) for matchup, found in seeds.items()})
    each = [folder.manifest["settings"] for folder in folders]
    settings = {**first["settings"], **_spread(each, plan)}
    if own := {name: options for one in each for name, options in (one.get("agent_options") or {}).items()}:
        settings["agent_options"] = own
    for name in ("agents", "scenarios"):
        settings[name] = list(dict.fromkeys(item for one in each for item in one.get(name, [])))
    looked = {limit for folder in folders for limit in folder.manifest.get("extended", ())}
    if settings.get("until") is not None:  # a run that may play fewer ends with a look that the others haven't
        looked |= {one["episodes"] for one in each} - {settings["episodes"]}
    sessions = [session for folder in folders for session in folder.manifest.get("sessions", [])]
    return {
        **first,
        **({"extended": sorted(looked)} if looked else {}),
        "kind": RUN_KIND,
        "settings": settings,
        "operation": first.get("operation", {}),
        "agents": list(agents.values()),
        "prices": {name: price for folder in folders for name, price in folder.manifest.get("prices", {}).items()},
        "merged_from": [folder.path.resolve().name for folder in folders],
        **plan.to_json(),
        "sessions": sorted(sessions, key=lambda session: str(session.get("started"))),
    }


def _spread(settings: Sequence[dict[str, Any]], plan: Plan) -> dict[str, int]:
    """Return ``episodes`` and ``seed_offset`` as one run of the whole plan would have them, if one could."""
    if any(settings[0].get(name) is not None for name in ("until", "levels")):  # the most that each may play
        return {"episodes": max(one["episodes"] for one in settings)}
    matchup, seeds = next(((matchup, seeds) for matchup, seeds in plan.seeds.items() if seeds), (None, ()))
    if matchup is None:
        return {}
    episodes, offset = len(seeds), seeds[0] - plan.scenarios[matchup.scenario].first_seed
    whole = plan.with_episodes(episodes, offset).seeds
    same = all(list(seeds) == list(whole[matchup]) for matchup, seeds in plan.seeds.items())
    return {"episodes": episodes, "seed_offset": offset} if same else {}
