"""An agent as a folder: ``textbench run --agent DIR``, if there is ``DIR/agent.toml``.

Its keys are those of a table ``[agents.NAME]`` of a configuration file: ``spec``, and options of that agent. Files that
they name are looked for in the folder first, so a folder may be moved. A folder may come from anybody. What it names of
code, servers, secrets, paid models and downloads is only used if this user has named it, too: with ``--allow`` and
``--set``, or in the command that made the folder here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from agents.claims import Claim, approve, content_digest, open_claims
from agents.common.toml import read_toml
from agents.load import baselines
from agents.models.provider import providers
from agents.wrappers import innermost, own_options, with_innermost, wrapped_in
from benchmark.errors import UsageError
from benchmark.play.agents.objects import AgentSpec, AgentTable
from benchmark.play.agents.options import options_of, read_sets, together
from benchmark.play.claims import claims_of
from benchmark.play.options import RunOptions, without_spec
from benchmark.runs.folder import folder_name

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
