"""Prompts that an improver writes: ``agent -> PromptTexts -> changed texts -> prompts/DIGEST.toml -> agent``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import LanguageAgentPolicy, PromptMap, PromptTexts
from agents.common import replacing, to_toml
from benchmark import UsageError
from benchmark.play import AgentTable, RunOptions, unloaded, without_spec
from benchmark.runs import data_digest

PROMPTS = "prompts"
"""The folder of all texts that were tried."""


def prompt_map_of(agent: AgentTable) -> PromptMap:
    """Return what an agent is asked with; a UsageError if it has no language model, or several wordings."""
    own = without_spec(agent)
    policy: Any = unloaded(agent["spec"], RunOptions(agent_options={"agent": own}), "agent")
    if not isinstance(policy, LanguageAgentPolicy):
        raise UsageError(f"{agent['spec']!r} is asked with no prompts, so none can be improved: name a language model")
    if policy.prompt_map.texts.wordings:
        raise UsageError(f"{agent['spec']!r} is asked in several wordings: name one of them with --prompts")
    return policy.prompt_map


def with_texts(agent: AgentTable, texts: PromptTexts, mode: str, folder: Path) -> AgentTable:
    """Return the agent with other texts, written to a file below ``folder`` that is named after them."""
    file = folder / PROMPTS / f"{data_digest(texts.as_data())[:12]}.toml"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_prompts(file, texts)
    return {**{name: value for name, value in agent.items() if name != "system"}, "prompts": str(file), "mode": mode}


def behind_the_rules(texts: PromptTexts, text: str) -> PromptTexts:
    """Return the texts with another one, in which nothing is filled in, behind the game's rules."""
    text = text.replace("$", "$$")
    if "$instructions" in texts.opening:
        return replace(texts, opening=f"{texts.opening}\n\n{text}")
    return replace(texts, system=f"{texts.system}\n\n{text}")


def in_folder(agent: AgentTable, folder: Path) -> AgentTable:
    """Return the agent as its folder names it, whose prompts lie there."""
    return {**agent, "prompts": str(Path(agent["prompts"]).relative_to(folder))}


def write_prompts(file: Path, texts: PromptTexts) -> None:
    """Write texts so that :meth:`~agents.prompt_texts.PromptTexts.from_file` reads these, and completes nothing."""
    data = {"clock": texts.clock, **texts.as_data()}
    data["open_response"] = {**texts.response, **texts.open_response}  # what a mode has that has none of its own
    with replacing(file) as stream:
        stream.writelines(f"{key} = {to_toml(value)}\n" for key, value in data.items())
