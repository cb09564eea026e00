"""Claims of a run's settings, which only its user can allow: code, servers, secrets, files, money and downloads.

``manifest | options | folder of an agent -> Claim, ...``. A run that is made has them from its user's own command, and
they are remembered with its folder. A run that is resumed has them from a file, which may be a stranger's.

So has an agent that is a folder: ``textbench run --agent DIR``, if there is ``DIR/agent.toml``. Its keys are those of a
table ``[agents.NAME]`` of a configuration file: ``spec``, and options of that agent. Files that they name are looked
for in the folder first, so a folder may be moved. What it claims is only used if this user has named it, too: with
``--allow`` and ``--set``, or in the command that made the folder here.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

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
from agents.common.toml import read_toml
from agents.load import baselines
from agents.models.provider import providers
from agents.wrappers import innermost, own_options, with_innermost, wrapped_in
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec, AgentTable, is_object, options_of, read_sets, together
from benchmark.play.options import RunOptions, arguments_of, without_spec
from benchmark.runs.folder import folder_name, resume_command
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
    said = [Claim("--allow", text, "") for text in given.allow]
    said += claims_of(RunOptions(base_url=given.base_url, cache=given.cache))
    for name, values in read_sets(given.sets, [AgentSpec.parse(text).name for text in options.agents]).items():
        said += _own(name, values, None)
    said += [claim for claim in claims if claim.flag == "--import" and claim.value in sys.modules]
    missing = open_claims(folder, claims, said, asked_for(manifest))
    if missing:
        missing = [claim._replace(meaning=f"{claim.meaning}{spending(claim.value)}") for claim in missing]
        if not ask(f"{folder} names {', '.join(claim.meaning for claim in missing)}. Do you trust it?"):
            command = " ".join([resume_command(folder), *map(shlex.quote, arguments_of(given))])
            raise UsageError(claims_refusal(folder, missing, command))
    approve(folder, claims, asked_for(manifest))
    return claims


AGENT_NAME = "agent.toml"


def with_agent_folders(options: RunOptions) -> RunOptions:
    """Return a run's options with those of the folders among its agents; an agent's given options go before them.

    An agent that is only a folder is called as it is. A UsageError is raised if a folder names what the user has to
    name.
    """
    agents = [_named(AgentSpec.parse(text)) for text in options.agents]
    given = together(options.agent_options, read_sets(options.sets, [agent.name for agent in agents]))
    texts, own = [], {}
    for text, agent in zip(options.agents, agents, strict=True):
        specs, tables = {inner: inner for inner in innermost(agent.spec)}, dict[str, AgentTable]()
        for inner in filter(is_agent_folder, specs):
            folder, table = Path(inner), _read(Path(inner))
            # before anything that it names is looked at
            _check_named(folder, agent.name, table, given.get(agent.name, {}), options.allow)
            tables[inner] = placed(folder, table, _in(folder), partial(_in(folder), ""))
            specs[inner] = str(tables[inner]["spec"])
        spec = with_innermost(agent.spec, specs.__getitem__)
        texts.append(f"{agent.name}={spec}" if tables else text)
        if tables:
            own[agent.name] = _agreed(agent, tables, given.get(agent.name, {}))
    if not own:
        return options
    return replace(options, agents=tuple(texts), agent_options=together(own, options.agent_options) or None)


def _agreed(agent: AgentSpec, tables: Mapping[str, AgentTable], given: Mapping[str, Any]) -> AgentTable:
    """Return the options of all folders inside of one agent, for all of whom they hold."""
    agreed: AgentTable = {}
    for inner, table in tables.items():
        for option, value in without_spec(table).items():
            others = () if option in given else _others_taking(option, value, agent.spec, inner, tables)
            if (other := next(iter(others), None)) is not None:
                raise UsageError(
                    f"{agent.spec}: {Path(inner) / AGENT_NAME} has {option} = {value!r}, which would hold for {other} "
                    "too, as options do for all agents inside of one: give it to each of them, or say what is to hold "
                    f"for all with --set {agent.name}.{option}=..."
                )
            agreed[option] = value
    return agreed


def _others_taking(option: str, value: Any, spec: str, mine: str, tables: Mapping[str, AgentTable]) -> Iterator[str]:
    """Yield who else in a spec, wrappers included, takes an option without having that value for its own."""
    if (wrapped := wrapped_in(spec)) is not None:
        if option in own_options(wrapped.name):
            yield wrapped.name
        for inner in wrapped.inside:
            yield from _others_taking(option, value, inner, mine, tables)
    elif spec != mine and tables.get(spec, {}).get(option) != value:
        taken, takes_others = options_of(tables.get(spec, {}).get("spec", spec))
        if takes_others or option in taken:
            yield spec


def is_agent_folder(spec: str) -> bool:
    """Report whether a spec is the path of such a folder."""
    return (Path(spec) / AGENT_NAME).is_file()


def approve_agent_folder(folder: Path, table: AgentTable) -> None:
    """Remember that the user has named what an agent's table names, for the folder that was made of it."""
    approve(folder, _claims(table, folder), content_digest(_read(folder)))


def _claims(table: AgentTable, folder: Path | None = None) -> list[Claim]:
    """Return the claims of a table, which only the user can allow, whatever the agent is called."""
    options = RunOptions(agents=(f"agent={table['spec']}",), agent_options={"agent": without_spec(table)})
    return claims_of(options, folder=folder)


def _check_named(folder: Path, name: str, table: AgentTable, given: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Refuse the table of the agent ``name`` if it names what the user hasn't in its given options and ``allowed``."""
    digest, claims = content_digest(table), _claims({**table, "spec": _placed_spec(table, _in(folder))}, folder)
    said = [*_claims({"spec": "random", **given}), *(Claim("--allow", text, "") for text in allowed)]
    missing = open_claims(folder, claims, said, digest)
    if not any(claim.flag == "--allow" for claim in missing):
        # what the agent doesn't take at all is reported with other mistakes
        known, _ = options_of(table["spec"], f"{folder / AGENT_NAME}: ")
        missing = [claim for claim in missing if claim.value.partition("=")[0].removeprefix("agent.") in known]
    if missing:
        meanings = ", ".join(claim.meaning.removesuffix(" of agent") for claim in missing)
        values = [one.value.replace("agent", name, 1) if one.flag == "--set" else one.value for one in missing]
        advice = " ".join(one._replace(value=value).said for one, value in zip(missing, values, strict=True))
        raise UsageError(f"{folder} names {meanings}, which you haven't; if you trust this folder, say so: {advice}")
    approve(folder, claims, digest)


def _named(agent: AgentSpec) -> AgentSpec:
    inside = innermost(agent.spec)
    if agent.name != agent.spec or len(inside) > 1 or not is_agent_folder(inside[0]):
        return agent
    return agent._replace(name=folder_name(Path(inside[0]).resolve().name))


def _read(folder: Path) -> AgentTable:
    file = folder / AGENT_NAME
    table = read_toml(file, f"the agent {file}", UsageError)
    if not isinstance(table.get("spec"), str):
        raise UsageError(f'{file} needs spec = "...", the agent as --agent takes it, and may have options of it')
    return table


def _in(folder: Path) -> Callable[[str, str], str]:
    return lambda provider, name: str(folder / name) if (folder / name).exists() else name


def from_anywhere(table: AgentTable) -> AgentTable:
    """Return the table with the whole paths of what it names here, which hold in whatever folder it is read."""

    def whole(name: str) -> str:
        path = Path(name).expanduser()
        return str(path.absolute()) if path.exists() else name

    def whole_of(provider: str, name: str) -> str:
        about = providers().get(provider) or baselines().get(provider)
        return whole(name) if about is not None and about.takes.startswith(("PATH", "FILE")) else name

    return placed(Path(), table, whole_of, whole)


def placed(folder: Path, table: AgentTable, model: Callable[[str, str], str], file: Callable[[str], str]) -> AgentTable:
    """Return the table with other paths of the files that it names, and of models and programs, ``hf:model``."""
    table = {**table, "spec": _placed_spec(table, model)}
    types, _ = options_of(table["spec"], f"{folder / AGENT_NAME}: ")
    paths = {option for option, kind in types.items() if Path in get_args(kind)} | {"adapter"}
    return {
        option: file(value) if option in paths and isinstance(value, str) and value else value
        for option, value in table.items()
    }


def _placed_spec(table: AgentTable, model: Callable[[str, str], str]) -> str:
    def placed(inner: str) -> str:
        provider, _, name = inner.partition(":")
        return f"{provider}:{model(provider, name)}" if name else inner

    return with_innermost(table["spec"], placed)
