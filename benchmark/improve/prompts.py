"""Prompts that an improver wrote, as a file of the agent's folder."""

from pathlib import Path

from agents.common.files import replacing
from agents.common.toml import to_toml
from agents.prompt import PromptTexts


def write_prompts(file: Path, texts: PromptTexts) -> None:
    """Write texts so that :meth:`~agents.prompt.PromptTexts.from_file` reads these, and completes nothing."""
    data = {"clock": texts.clock, **texts.as_data()}
    data["open_response"] = {**texts.response, **texts.open_response}  # what a mode has that has none of its own
    with replacing(file) as stream:
        stream.writelines(f"{key} = {to_toml(value)}\n" for key, value in data.items())
