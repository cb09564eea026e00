"""Claims of a run's settings, which only its user can allow: code, servers, secrets, files, money and downloads.

``manifest | options -> Claim, ...``. A run that is made has them from its user's own command, and they are remembered
with its folder. A run that is resumed has them from a file, which may be anybody's.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.claims import (
    Claim,
    approve,
    claims_of_player,
    claims_refusal,
    content_digest,
    is_harmless,
    names_code,
    open_claims,
)
from agents.common.redaction import public_url
from benchmark.errors import UsageError
from benchmark.play.agents.objects import AgentSpec, is_object
from benchmark.play.agents.options import read_sets
from benchmark.play.options import RunOptions, arguments_of
from benchmark.runs.folder import resume_command
from benchmark.runs.manifest import Manifest


def claims_of(options: RunOptions, env_ids: Iterable[str] = (), folder: Path | None = None) -> list[Claim]:
    """Return all claims of a run's options and its games, in ``folder`` if they are from there."""
    specs = [spec for spec in map(AgentSpec.parse, options.agents) if not is_object(spec.spec)]
    claims = [claim for spec in specs for claim in claims_of_player(spec.spec, folder=folder)]
    claims += [Claim("--import", module, f"the module {module}") for module in modules_of(env_ids)]
    if options.base_url is not None and public_url(options.base_url) not in _servers_of_environment():
        url = public_url(options.base_url)
        claims.append(Claim("--base-url", url, f"the server {url}"))
    if options.cache is not None:
        claims.append(Claim("--cache", options.cache, f"the response cache {options.cache}"))
    if options.extra_body:
        text = json.dumps(options.extra_body, sort_keys=True)
        claims.append(Claim("--allow", f"extra_body={text}", f"the extra_body {text}"))
    code = {spec.name for spec in specs if names_code(spec.spec)}  # which may do with its options what it likes
    for name, own in options.by_agent.items():
        claims += () if name in code else _own(name, own, folder)
    return claims


def _own(name: str, options: Mapping[str, Any], folder: Path | None) -> Iterator[Claim]:
    for option, value in options.items():
        if is_harmless(option, value, folder):
            continue
        if option == "base_url" and isinstance(value, str):
            value = public_url(value)
            if value in _servers_of_environment():
                continue
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        yield Claim("--set", f"{name}.{option}={text}", f"the {option} {text} of {name}")


def modules_of(env_ids: Iterable[str]) -> list[str]:
    """List the modules that ids such as ``my_module:MyGame-v0`` name, each once; settings may stand behind an id."""
    return list(dict.fromkeys(filter(None, (env_id.partition("(")[0].rpartition(":")[0] for env_id in env_ids))))


def claims_of_prices(manifest: Manifest) -> Iterator[Claim]:
    """Yield the claims of a manifest's prices, by which a limit of money is kept."""
    for name, price in manifest.get("prices", {}).items():
        figures = "/".join(f"{price[part]:g}" for part in ("input", "output", "cached_input") if part in price)
        yield Claim("--allow", f"{name}={figures} USD", f"the price of {figures} USD per million tokens of {name}")


def _servers_of_environment() -> set[str]:
    named = (os.environ.get(name, "").strip() for name in ("OPENAI_BASE_URL", "TEXTBENCH_BASE_URL"))
    return {public_url(url) for url in named if url}


def said_by(given: RunOptions, agents: Iterable[str]) -> list[Claim]:
    """Return the claims that a command line allows for the agents of these names."""
    said = [Claim("--allow", text, "") for text in given.allow]
    said += claims_of(RunOptions(base_url=given.base_url, cache=given.cache))
    for name, values in read_sets(given.sets, tuple(agents)).items():
        said += _own(name, values, None)
    return said


def asked_for(manifest: Manifest) -> str:
    """Return a digest of what a manifest asks for: its settings and limits, its games, and every episode of them.

    The episodes of a run that grows by itself are as many as its settings allow, however many it has now.
    """
    settings = manifest["settings"]
    grows = settings.get("until") is not None or settings.get("levels") is not None
    tables = []
    for row in manifest["matchups"]:
        count = sum(last - first + 1 for first, last in row["seeds"])
        tables.append([row["scenario"], row["agents"], max(0, count - settings["episodes"]) if grows else row["seeds"]])
    return content_digest([settings, manifest.get("operation"), manifest["scenarios"], tables])


def check_claims(
    folder: Path,
    manifest: Manifest,
    options: RunOptions,
    given: RunOptions,
    ask: Callable[[str], bool],
    spending: Callable[[str], str],
) -> list[Claim]:
    """Refuse to resume a run's folder that names what its user hasn't; return all that it names, which is approved.

    It would be played with ``options``: the manifest's, and those ``given`` on this command line before them. ``ask``
    puts a question to the user; ``spending(spec)`` tells in words what a model would be asked and what that costs.
    """
    claims = claims_of(options, [scenario["env_id"] for scenario in manifest["scenarios"].values()], folder)
    claims += claims_of_prices(manifest)
    said = said_by(given, [AgentSpec.parse(text).name for text in options.agents])
    said += [claim for claim in claims if claim.flag == "--import" and claim.value in sys.modules]
    missing = open_claims(folder, claims, said, asked_for(manifest))
    if missing:
        missing = [claim._replace(meaning=f"{claim.meaning}{spending(claim.value)}") for claim in missing]
        if not ask(f"{folder} names {', '.join(claim.meaning for claim in missing)}. Do you trust it?"):
            command = " ".join([resume_command(folder), *map(shlex.quote, arguments_of(given))])
            raise UsageError(claims_refusal(folder, missing, command))
    approve(folder, claims, asked_for(manifest))
    return claims
