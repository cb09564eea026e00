"""An agent as a folder: ``textbench run --agent DIR``, where ``DIR/agent.toml`` says who it is.

Its keys are those of a table ``[agents.NAME]`` of a configuration file: ``spec``, and options of that agent. What they
name of files is looked for in the folder first, so a folder may be moved with its weights and its prompts. It is
written by ``textbench improve``, or by hand. A run holds what it says in its own manifest, as if a configuration file
had said it: a folder is trusted as such a file is.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from agents.common.files import replacing
from agents.common.toml import read_toml, to_toml
from agents.load import options_taken
from agents.wrappers import innermost
from benchmark.errors import UsageError
from benchmark.play.agents.objects import AgentSpec, AgentTable
from benchmark.play.agents.options import together
from benchmark.play.options import RunOptions
from benchmark.runs.folder import folder_name

AGENT_NAME = "agent.toml"


def with_agent_folders(options: RunOptions) -> RunOptions:
    """A run's options with what the folders among its agents say; what is given for an agent by name goes before it.

    An agent that is only a folder is called as the folder is.

    Raises:
        UsageError: an ``agent.toml`` that can't be read.
    """
    texts, own = [], {}
    for text in options.agents:
        name, table = _opened(text)
        texts.append(text if table is None else f"{name}={table['spec']}")
        if table is not None:
            own[name] = {option: value for option, value in table.items() if option != "spec"}
    if not own:
        return options
    return replace(options, agents=tuple(texts), agent_options=together(own, options.agent_options) or None)


def _opened(text: str) -> tuple[str, AgentTable | None]:
    """The name of an agent, and what its folder says; ``None`` where it is none."""
    agent = AgentSpec.parse(text)
    inner = innermost(agent.spec)
    if not (Path(inner) / AGENT_NAME).is_file():
        return agent.name, None
    table = read_agent_folder(Path(inner))
    spec = agent.spec.replace(inner, table["spec"])  # a wrapper's around it
    alone = agent.name == agent.spec
    return folder_name(Path(inner).resolve().name) if alone else agent.name, {**table, "spec": spec}


def read_agent_folder(folder: Path) -> AgentTable:
    """What ``agent.toml`` says, with the paths of what lies in the folder.

    Raises:
        UsageError: it can't be read, or names no agent.
    """
    file = folder / AGENT_NAME
    table = read_toml(file, f"the agent {file}", UsageError)
    if not isinstance(table.get("spec"), str):
        raise UsageError(f'{file} needs spec = "...", the agent as --agent takes it, and may have options of it')
    inner = innermost(table["spec"])
    found = table["spec"].replace(inner, _spec_in(folder, inner))
    try:
        types = options_taken(found)[0]
    except (ValueError, ImportError) as error:
        raise UsageError(f"{file}: {' '.join(str(error).split())}") from None
    paths = {option for option, kind in types.items() if Path in get_args(kind)} | {"adapter"}
    return {
        option: str(_in(folder, value)) if option in paths and isinstance(value, str) else value
        for option, value in {**table, "spec": found}.items()
    }


def write_agent_folder(folder: Path, table: Mapping[str, Any]) -> None:
    """Write ``agent.toml``; what is ``None`` isn't said.

    Raises:
        OSError: the folder can't be written.
    """
    lines = [f"{option} = {to_toml(value)}\n" for option, value in table.items() if value is not None]
    with replacing(folder / AGENT_NAME) as stream:
        stream.writelines(lines)


def _spec_in(folder: Path, spec: str) -> str:
    """A spec whose file lies in the folder: ``hf:model``, or ``player.py:Mine``."""
    provider, colon, name = spec.partition(":")
    if name and (folder / name).exists():
        return f"{provider}:{folder / name}"
    return f"{folder / provider}:{name}" if colon and (folder / provider).is_file() else spec


def _in(folder: Path, path: str) -> Path | str:
    return folder / path if path and (folder / path).exists() else path
