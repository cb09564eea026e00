"""What this user's own commands have said that a folder may use: code, servers, variables with secrets, files.

A folder with a run or a training may come from anybody. What it names is read, and nothing of it is imported, asked or
sent anywhere until the user has named it, too: on the command line that made the folder or that goes on with it. What
was said once for a folder is kept in the user's cache folder; where that is lost, it is asked for again.
"""

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from agents.common.files import replacing
from textgames.cache import cache_folder


class Claim(NamedTuple):
    """One thing that a folder names and that only its user can allow."""

    flag: str  # what says it on a command line, ``--allow``
    value: str  # and what follows, ``evil.py:Agent``
    meaning: str  # for people: ``"the code evil.py:Agent"``

    @property
    def key(self) -> str:
        """The text that is remembered once the claim was allowed."""
        return f"{self.flag} {self.value}"


def approve(folder: Path, claims: Iterable[Claim]) -> None:
    """Remember that the user named these for a folder. Where nothing can be kept, it is asked for again."""
    known = {claim.key for claim in claims}
    if not known or known <= (before := _approved(folder)):
        return
    file = _file_of(folder)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(file) as stream:
            json.dump({"folder": str(folder.resolve()), "approved": sorted(known | before)}, stream, indent=1)


def open_claims(folder: Path, claims: Iterable[Claim], said: Iterable[Claim] = ()) -> list[Claim]:
    """The claims that the user hasn't allowed yet, on this command line (``said``) or on an earlier one."""
    known = _approved(folder) | {claim.key for claim in said}
    return [claim for claim in dict.fromkeys(claims) if claim.key not in known]


def refusal(folder: Path, claims: Iterable[Claim], command: str) -> str:
    """Why a folder isn't gone on with, as one sentence that ends with the command that says otherwise."""
    claims = list(claims)
    named = ", ".join(claim.meaning for claim in claims)
    arguments = " ".join(f"{claim.flag} {shlex.quote(claim.value)}" for claim in claims)
    return f"{folder} names {named}, which you haven't; if you trust this folder, say so: {command} {arguments}"


def _approved(folder: Path) -> set[str]:
    try:
        return set(map(str, json.loads(_file_of(folder).read_bytes())["approved"]))
    except (OSError, ValueError, TypeError, KeyError):  # nothing, or nothing that can be read
        return set()


def _file_of(folder: Path) -> Path:
    return cache_folder() / "approved" / f"{sha256(str(folder.resolve()).encode()).hexdigest()[:24]}.json"
