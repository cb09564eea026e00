"""What to say about going on: with a run that ended early, and with a model that can't begin."""

import shlex
from pathlib import Path

from agents.msgrpo.config import MSGRPOConfig
from textgames import SCENARIOS


def another_start(config: MSGRPOConfig) -> str:
    """The ways out for a model that doesn't answer in the form that is asked for."""
    other = "direct" if config.response_mode == "think" else "think"
    ways = ["a warm start (supervised fine-tuning on played decisions, which textbench export --sft FILE writes)"]
    if config.model != "tiny-legal" and config.scenarios and all(_lists_actions(name) for name in config.scenarios):
        ways.append("model = 'tiny-legal' with response_mode = 'direct' (a tiny base that is made for the scenarios)")
    ways.append(f"response_mode = {other!r} if the model was made for that")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _lists_actions(name: str) -> bool:
    return name in SCENARIOS and bool(SCENARIOS[name].game().actions)


def going_on(out: Path, config: MSGRPOConfig, *, by_command: bool, changes: str = "") -> str:
    """How a saved run is gone on with.

    Args:
        out: the run's folder.
        config: its settings.
        by_command: whether the command line can make the run again. It can't where it was begun from Python with
            prompts, an engine or evaluations of its own, or with a model or game that the settings don't name.
        changes: what else to write after the command.
    """
    if by_command and config.model and config.scenarios:
        return f"python -m agents.msgrpo --resume {shlex.quote(str(out))}{changes and ' ' + changes}"
    return f"make the trainer again as it was made, then trainer.resume({str(out)!r})"
