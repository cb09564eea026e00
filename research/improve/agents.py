"""Agents as improvers hand them on: tables ``{"spec": ..., option: value}``, made, and kept in a folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import Policy
from agents.common import replacing, to_toml
from benchmark.play import AGENT_NAME, AgentTable, RunOptions, load_one, without_spec
from textgames import Scenario


def load_table(table: AgentTable, options: RunOptions, *scenarios: Scenario) -> tuple[Policy, RunOptions]:
    """Make an agent with the options of its table, which go before those of all agents, as ``load_one`` does."""
    spec, own = str(table["spec"]), without_spec(table)
    return load_one(spec, replace(options, agent_options={spec: own} if own else None), *scenarios)


def write_agent_folder(folder: Path, table: Mapping[str, Any]) -> None:
    """Write ``agent.toml`` without the options that are ``None``; raises an OSError if it can't be written."""
    lines = [f"{option} = {to_toml(value)}\n" for option, value in table.items() if value is not None]
    with replacing(folder / AGENT_NAME) as stream:
        stream.writelines(lines)
