"""Approvals: the code, servers, secrets, files, money and downloads that this user's commands let a folder use.

A folder with a run, an agent or a training may come from anybody. Nothing that it names is imported, asked, paid,
fetched or sent anywhere until the user has named it too: on the command line that made the folder or that resumes it.
An approval is kept in the user's cache folder and is bound to the folder's content.
"""

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from agents.common.files import replacing
from textgames.cache import cache_folder


class Claim(NamedTuple):
    """One thing that a folder names and that only its user can allow."""

    flag: str  # what says it on a command line, ``--allow``
    value: str  # and what follows, ``evil.py:Agent``
    meaning: str  # for people: ``"the code evil.py:Agent"``

    @property
    def said(self) -> str:
        """The words of a command line that allow it."""
        return f"{self.flag} {shlex.quote(self.value)}"


def content_digest(content: Any) -> str:
    """Digest plain data: what a folder asks for, to which an approval is bound."""
    return sha256(json.dumps(content, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def approve(folder: Path, claims: Iterable[Claim], digest: str) -> None:
    """Remember that the user named these claims for a folder of this content."""
    known = {_key(claim, digest) for claim in claims}
    if not known or known <= (before := _approved(folder)):
        return
    file = _file_of(folder)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(file) as stream:
            json.dump({"folder": str(folder.resolve()), "approved": sorted(known | before)}, stream, indent=1)


def open_claims(folder: Path, claims: Iterable[Claim], said: Iterable[Claim], digest: str) -> list[Claim]:
    """List the claims that the user hasn't allowed yet, on this command line (``said``) or on an earlier one."""
    known, now = _approved(folder), {claim.said for claim in said}
    return [claim for claim in dict.fromkeys(claims) if _key(claim, digest) not in known and claim.said not in now]


def refusal(folder: Path, claims: Iterable[Claim], command: str) -> str:
    """Say in one sentence why a folder isn't resumed, with the command that allows it."""
    claims = list(claims)
    named = ", ".join(claim.meaning for claim in claims)
    arguments = " ".join(claim.said for claim in claims)
    return f"{folder} names {named}, which you haven't; if you trust this folder, say so: {command} {arguments}"


def _key(claim: Claim, digest: str) -> str:
    return f"{digest} {claim.flag} {claim.value}"


def _approved(folder: Path) -> set[str]:
    try:
        return set(map(str, json.loads(_file_of(folder).read_bytes())["approved"]))
    except (OSError, ValueError, TypeError, KeyError):  # nothing, or nothing that can be read
        return set()


def _file_of(folder: Path) -> Path:
    return cache_folder() / "approved" / f"{sha256(str(folder.resolve()).encode()).hexdigest()[:24]}.json"
