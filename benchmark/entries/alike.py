"""Entries that are taken for another player's: by their names, or by their actions, which is a warning alone.

``planner.`` and ``planner``, ``frozen-Iake`` and ``frozen-lake`` are the same to a reader; equal actions may be chance.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

from agents.common.refusals import shown
from agents.episode import EpisodeTask
from agents.load import baselines
from agents.loop.rollout import rollout
from agents.models.provider import providers
from benchmark.errors import UsageError
from benchmark.play.agents.players import OWN_PLAYERS, is_shipped, load_policy, why_not_played
from benchmark.play.options import RunOptions
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import ENTRY_KIND, MANIFEST_NAME, read_manifest
from benchmark.runs.plan import Plan

_ALIKE = (("rn", "m"), ("vv", "w"), ("1", "l"), ("i", "l"), ("0", "o"))
"""Letters of small names that look alike, or nearly, in one typeface or another; the others stand for the first."""
_SIGNS = re.compile(r"(?<!\d)\W|\W(?!\d)|_")
"""Signs that are easily overlooked. The point of 4.1 isn't one, which makes another number of it."""


def same_to_a_reader(one: str, other: str) -> bool:
    """Report whether two names differ in nothing but capitals, signs and letters that look alike."""
    return _skeleton(one) == _skeleton(other)


def _skeleton(name: str) -> str:
    text = _SIGNS.sub("", normalize("NFKC", name).casefold())
    for letters, looks_like in _ALIKE:
        text = text.replace(letters, looks_like)
    return text


def shipped_problem(name: str, spec: str) -> str | None:
    """Return why an agent may not have a name that reads like that of a player that ships; ``None`` if it may."""
    shipped = [*baselines(), *(name for provider in providers().values() for name in provider.models)]
    other = next((one for one in shipped if same_to_a_reader(name, one)), None)
    if other is None or name == spec == other:
        return None
    like = "" if name == other else f"which can't be told from {other!r}, "
    return f"the agent's name is {name!r}, {like}which is a player of the project, but its spec is {shown(spec)}"


def problems_beside(name: str, place: Path, own: str) -> Iterator[str]:
    """Yield which entries in a folder, but for the subfolder ``own``, have a name that an agent's reads like."""
    for folder in entries_in(place):
        other = read_manifest(folder).get("agent", folder.name)
        if folder.name != own and same_to_a_reader(name, other):
            yield f"the agent's name is {name!r}, which can't be told from {other!r}, the entry beside it"


def entries_in(place: Path) -> list[Path]:
    """Return the folders of the entries in a folder; what is no entry at all isn't among them."""
    found = []
    for folder in sorted(file.parent for file in place.glob(f"*/{MANIFEST_NAME}")):
        try:
            if read_manifest(folder)["kind"] == ENTRY_KIND:
                found.append(folder)
        except UsageError:
            continue
    return found


ENOUGH = 50
"""The least number of decisions in a scenario whose equality is worth a sentence."""

Actions = Mapping[str, Mapping[int, tuple[str, ...]]]
"""``{scenario: {seed: the executed actions}}`` of one agent alone."""


def likeness_warnings(entry: RunFolder, plan: Plan, beside: Path) -> Iterator[str]:
    """Yield which scripted players and entries ``beside`` executed the same actions in a scenario, and how many.

    A model that ships takes long to ask: it is compared if its own entry lies beside. Its own entry isn't compared.
    """
    if is_shipped(entry.manifest["agents"][0]["spec"]):
        return
    ours = actions_in(entry.path)
    same = []
    for other in entries_in(beside):
        if other.name != entry.path.name:
            try:
                same.append((f"the entry {other.name!r}", equal_decisions(ours, actions_in(other))))
            except (UsageError, OSError):  # which is reported when that entry is checked
                continue
    same += [(f"the player {name!r}", _as_player(ours, name, plan)) for name in OWN_PLAYERS]
    for who, scenarios in same:
        if scenarios:
            counts = ", ".join(f"{count} in {scenario}" for scenario, count in scenarios.items())
            yield f"all actions are those of {who} ({counts})"


def actions_in(entry: Path) -> Actions:
    """Return the executed actions of an entry's episodes."""
    stat = RunFolder.open(entry).episodes_path.stat()
    return _read(entry, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _read(entry: Path, size: int, changed: int) -> Actions:
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for record in RunFolder.open(entry).records():
        if len(record.agents) == 1:
            found.setdefault(record.scenario, {})[record.seed] = tuple(step.action for step in record.steps)
    return found


def equal_decisions(ours: Actions, theirs: Actions) -> dict[str, int]:
    """Return ``{scenario: decisions}`` if all actions are equal on the seeds that both have played, and enough."""
    found = {}
    for scenario, own in ours.items():
        common = own.keys() & theirs.get(scenario, {}).keys()
        count = sum(len(own[seed]) for seed in common)
        if count >= ENOUGH and all(own[seed] == theirs[scenario][seed] for seed in common):
            found[scenario] = count
    return found


def _as_player(ours: Actions, name: str, plan: Plan) -> dict[str, int]:
    """Let a player play the same seeds, as long as its actions are equal: it is done with most after an episode."""
    policy, found = load_policy(name, RunOptions(), name), dict[str, int]()
    for scenario, own in ours.items():
        if why_not_played(policy, plan.scenarios[scenario]) is not None:
            continue
        seeds, theirs = [*own], dict[int, tuple[str, ...]]()
        for part in (seeds[:1], seeds[1:4], seeds[4:]):
            tasks = [EpisodeTask.of(plan.scenarios[scenario], seed) for seed in part]
            for episode in rollout(policy, tasks):
                theirs[episode.seed] = tuple(step.action for step in episode.steps)
            if any(theirs.get(seed) != own[seed] for seed in part):
                break
        else:
            found |= equal_decisions({scenario: own}, {scenario: theirs})
    return found
