"""Names that readers take for each other: ``planner.`` and ``planner``, ``frozen-Iake`` and ``frozen-lake``."""

import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from agents.common.refusals import shown
from agents.load import baselines
from agents.models.provider import providers
from benchmark.errors import UsageError
from benchmark.runs.manifest import ENTRY_KIND, MANIFEST_NAME, read_manifest

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
