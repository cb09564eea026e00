"""The tier of an entry: who vouches for its responses, which nothing in the entry's folder can claim.

A check of an entry computes the responses of a player that ships, or is a season's registered program, and reports
that: ``re-run here``. A board computes nothing: there the tier is what ``known.toml`` has for the entry's digest.
"""

import tomllib
from functools import cache
from hashlib import file_digest, sha256
from importlib.resources import files
from pathlib import Path

from benchmark.runs.folder import EPISODES_NAME
from benchmark.runs.manifest import MANIFEST_NAME

RERUN, REPRODUCED, REPORTED = "re-run here", "reproduced by maintainers", "self-reported"


@cache
def listed() -> dict[str, str]:
    """Return ``{digest: tier}`` of the entries that the maintainers list."""
    tables = tomllib.loads(files("benchmark.runs").joinpath("known.toml").read_text(encoding="utf-8"))
    return {digest: tier for tier in (RERUN, REPRODUCED) for digest in tables[tier].values()}


def digest_of(entry: Path) -> str:
    """Return the digest of an entry: of its manifest and its episodes, byte for byte."""
    whole = sha256()
    for name in (MANIFEST_NAME, EPISODES_NAME):
        with (entry / name).open("rb") as stream:
            whole.update(file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def tier_of(entry: Path) -> str:
    """Return the tier of an entry that isn't asked again, by the maintainers' list."""
    return listed().get(digest_of(entry), REPORTED) if (entry / EPISODES_NAME).is_file() else REPORTED


def taken_on_trust(authorship: str, asked_once: bool) -> list[str]:
    """Return what no check of an entry of this tier can establish, so that no reader takes it for checked.

    ``asked_once``: one episode of each scenario was asked again.
    """
    measured = "seconds, prices, what servers called their models, and tokens within what a tokenizer can make of texts"
    if authorship != REPORTED:
        return [measured]
    asked = ", but for one episode of each scenario" if asked_once else ""
    return [
        f"who answered{asked}: another player, a person or a program may have written the responses",
        "that they are the first answers: a worse play of the same seeds, or its failures alone, may have been "
        "replaced, as far as luck doesn't show it",
        "that protocol and settings were chosen before the episodes were played",
        measured,
    ]
