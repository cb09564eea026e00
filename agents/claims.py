"""Claims: all that a folder's players make this machine do and that only its user can allow, and what was allowed.

A run, an agent or a training may come from anybody. A player in it may run code, ask a server, read a secret or a file,
spend the user's money, and fetch weights. Nothing of that is done until the user has named it too: on the command line
that made the folder or that resumes it. An approval is kept in the user's cache folder, bound to the folder's content.
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from agents.common.files import replacing
from agents.load import baselines, holds_programs, registered_agents
from agents.models.local.loading.adapters import SETTINGS
from agents.models.provider import fetched_by, find_model
from agents.prompt_texts import packaged_prompts
from agents.wrappers import innermost
from textgames.cache import cache_folder

HARMLESS = (
    *("temperature", "top_p", "max_tokens", "stop", "mode", "history", "system", "seed", "send_seed"),
    *("timeout", "max_retries", "patience", "route", "omit", "max_tokens_field", "reasoning_effort"),
    *("reasoning_tokens", "dtype", "device", "revision", "max_batch_tokens", "chat"),
    *("chat_template_kwargs", "thinking_budget", "legal_only", "seconds", "memory_mb", "max_states"),
)
"""Options of players that neither run code nor read a file, fetch anything or decide where anything is sent.

Every other one has to be allowed; ``prompts`` only if they lie elsewhere, ``adapter`` only if it isn't here. The
``key`` of a program has to be, too: an author that has chosen it can find out the seeds.
"""


class Claim(NamedTuple):
    """One thing that a folder names and that only its user can allow."""

    flag: str  # ``--allow``
    value: str  # ``evil.py:Agent``
    meaning: str  # ``"the code evil.py:Agent"``

    @property
    def said(self) -> str:
        """The words of a command line that allow it."""
        return f"{self.flag} {shlex.quote(self.value)}"


def content_digest(content: Any) -> str:
    """Digest plain data: what a folder asks for, to which an approval is bound."""
    return sha256(json.dumps(content, sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()


def approve(folder: Path, claims: Iterable[Claim], digest: str) -> None:
    """Remember that the user named these claims for a folder of this content."""
    known, (file, before) = {_key(claim, digest) for claim in claims}, _approved(folder)
    if known <= before:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(file) as stream:
            json.dump({"folder": str(folder.resolve()), "approved": sorted(known | before)}, stream, indent=1)


def open_claims(folder: Path, claims: Iterable[Claim], said: Iterable[Claim], digest: str) -> list[Claim]:
    """List the claims that the user hasn't allowed yet, on this command line (``said``) or on an earlier one."""
    (_, known), now = _approved(folder), {claim.said for claim in said}
    return [claim for claim in dict.fromkeys(claims) if _key(claim, digest) not in known and claim.said not in now]


def claims_refusal(folder: Path, claims: Iterable[Claim], command: str) -> str:
    """Say in one sentence why a folder isn't resumed, with the command that allows it."""
    claims = list(claims)
    named = ", ".join(claim.meaning for claim in claims)
    arguments = " ".join(claim.said for claim in claims)
    return f"{folder} names {named}, which you haven't; if you trust this folder, say so: {command} {arguments}"


def _key(claim: Claim, digest: str) -> str:
    return f"{digest} {claim.flag} {claim.value}"


def _approved(folder: Path) -> tuple[Path, set[str]]:
    """Return the file of a folder's approvals, and those that can be read in it."""
    file = cache_folder() / "approved" / f"{sha256(str(folder.resolve()).encode()).hexdigest()[:24]}.json"
    try:
        return file, set(map(str, json.loads(file.read_bytes())["approved"]))
    except (OSError, ValueError, TypeError, KeyError):
        return file, set()


def claims_of_player(spec: str, spent: str = "", folder: Path | None = None) -> Iterator[Claim]:
    """Yield what a player's spec names: code, servers, files, paid models and downloads.

    ``spent`` says how much a paid model would be asked; ``folder`` names the player and may have programs of its own.
    """
    if "://" in spec:  # some of LiteLLM's models are named by their address
        yield Claim("--allow", spec, f"the server in {spec}")
    elif names_code(spec):
        yield Claim("--allow", spec, f"the code {spec}")
    for one in innermost(spec):
        with suppress(ValueError):  # a provider without a model, which is said when it is made
            if (found := find_model(one)) is not None:
                if found[0].paid:
                    yield Claim("--allow", one, f"the paid model {one}{spent}")
                yield from claim_of_fetching(one)
        kind, _, file = one.partition(":")
        if file and kind in baselines() and not is_own_file(file, folder):  # of which the error may show a line
            yield Claim("--allow", one, f"the program {file}")


def claim_of_fetching(source: str) -> Iterator[Claim]:
    """Yield the claim of a model that has to be fetched, ``hf:ORG/NAME``, or whose base has to be."""
    if (fetched := fetched_by(source)) is not None:
        yield Claim("--allow", fetched, f"the download of {fetched}")


def names_code(spec: str) -> bool:
    """Report whether a spec is code to import that no installed package has registered and no sandbox holds."""
    return any(map(_is_code, innermost(spec)))


def _is_code(spec: str) -> bool:
    if (baseline := baselines().get(spec.partition(":")[0])) is not None and baseline.takes:
        return not holds_programs(spec)
    if ":" not in spec or spec in registered_agents():
        return False
    try:
        return find_model(spec) is None
    except ValueError:  # a provider without a model, which is said when it is made
        return False


def is_harmless(option: str, value: Any, folder: Path | None = None) -> bool:
    """Report whether a player's option needs no leave of the user, in the ``folder`` that names it if one does."""
    if not value or option in HARMLESS:
        return True
    if option == "adapter":  # of a hub, unless it is here
        return any((place / SETTINGS).is_file() for place in _places(str(value), folder))
    return option == "prompts" and is_own_prompts(str(value), folder)


def is_own_prompts(name: str, folder: Path | None) -> bool:
    """Report whether prompts ship or lie in the folder that names them: others could send a private file."""
    if folder is None or not any(place.exists() for place in _places(name, folder)):
        return name in packaged_prompts()
    return is_own_file(name, folder)


def is_own_file(name: str, folder: Path | None) -> bool:
    """Report whether a file lies in the folder that names it, and is no link out of it."""
    found = [place.resolve() for place in _places(name, folder) if place.exists()]
    return folder is not None and bool(found) and all(place.is_relative_to(folder.resolve()) for place in found)


def _places(name: str, folder: Path | None) -> list[Path]:
    return [Path(name).expanduser(), *([folder / name] if folder is not None else [])]
