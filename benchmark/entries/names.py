"""Names that readers take for each other: ``planner.`` and ``planner``, ``frozen-Iake`` and ``frozen-lake``."""

import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from agents.load import BASELINES
from agents.models.provider import providers
from benchmark.errors import UsageError
from benchmark.runs.folder import folder_name
from benchmark.runs.manifest import ENTRY_KIND, MANIFEST_NAME, read_manifest

_ALIKE = (("rn", "m"), ("vv", "w"), ("1", "l"), ("i", "l"), ("0", "o"))
"""Letters of small names that look alike, or nearly, in one typeface or another; the others stand for the first."""
_SIGNS = re.compile(r"(?<!\d)\W|\W(?!\d)|_")
"""Signs that are easily overlooked. The point of 4.1 isn't one, which makes another number of it."""


def same_to_a_reader(one: str, other: str) -> bool:
    """Return whether two names differ in nothing but capitals, signs and letters that look alike."""
    return _skeleton(one) == _skeleton(other)


def _skeleton(name: str) -> str:
    text = _SIGNS.sub("", normalize("NFKC", name).casefold())
    for letters, looks_like in _ALIKE:
        text = text.replace(letters, looks_like)
    return text


def shipped_names() -> list[str]:
    """Return the names of all players and models that have one of their own in this project."""
    return [*BASELINES, *(name for provider in providers().values() for name in provider.models)]


def likeness_problems(name: str, spec: str, beside: Path | None = None) -> Iterator[str]:
    """Tell which other name an agent's name could be taken for.

    Args:
        name: the agent's.
        spec: what it is made from. A player that ships has its own name.
        beside: the folder of the other entries; ``None`` if there is none.
    """
    for other in shipped_names():
        if same_to_a_reader(name, other) and not name == spec == other:
            own = f"with the spec {spec!r}" if name == other else f"which can't be told from {other!r}"
            yield f"the agent's name is {name!r}, {own}, a player of the project; play it under another name"
            return
    for other in [] if beside is None else names_beside(beside, folder_name(name)):
        if same_to_a_reader(name, other):
            yield f"the agent's name is {name!r}, which can't be told from {other!r}, the entry beside it"


def names_beside(place: Path, but: str) -> Iterator[str]:
    """Return the agents' names of the entries in a folder, but for the entry in the subfolder ``but``."""
    for folder in entries_in(place):
        if folder.name != but:
            try:
                yield read_manifest(folder).get("agent", folder.name)
            except UsageError:  # which is told when that entry is checked
                yield folder.name


def entries_in(place: Path) -> list[Path]:
    """Return the folders of the entries in a folder; what is no entry at all isn't among them."""
    found = sorted(file.parent for file in place.glob(f"*/{MANIFEST_NAME}"))
    return [folder for folder in found if _is_entry(folder)]


def _is_entry(folder: Path) -> bool:
    try:
        return bool(read_manifest(folder)["kind"] == ENTRY_KIND)
    except UsageError:
        return False
