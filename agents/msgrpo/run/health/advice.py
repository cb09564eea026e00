"""What to say about going on: with a run that ended early, and with a model that can't begin."""

import shlex
from pathlib import Path
from typing import Any

from agents.baselines.search import find_search_player
from agents.episode import EpisodeTask
from agents.msgrpo.configuration.config import MSGRPOConfig
from textgames import TSMG, game_of


def another_start(config: MSGRPOConfig) -> str:
    """The ways out for a model that doesn't answer in the form that is asked for."""
    other = "direct" if config.response_mode == "think" else "think"
    ways = [f"a warm start ({warm_start(config)})"]
    if config.model != "tiny-legal" and config.scenarios and all(_lists_actions(name) for name in config.scenarios):
        ways.append("model = 'tiny-legal' with response_mode = 'direct' (a tiny base that is made for the scenarios)")
    ways.append(f"response_mode = {other!r} if the model was made for that")
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def warm_start(config: MSGRPOConfig) -> str:
    """The command that teaches a model the form of answers, and the games as far as somebody knows them."""
    teacher = "planner" if config.scenarios and all(map(_has_planner, config.scenarios)) else "random"
    parts = {
        "--model": [config.model or "MODEL"],
        "--scenario": config.scenarios or ["SCENARIO"],
        "--teacher": [teacher],
        "--mode": [config.response_mode],
        "--prompts": [config.prompt_file] if config.prompt_file else [],
    }
    options = [f"{flag} {shlex.join(values)}" for flag, values in parts.items() if values]
    return f"textbench warmup {' '.join(options)}{' --legal-only' if config.legal_only else ''}"


def against_collapse(config: MSGRPOConfig) -> str:
    """The ways out where the format penalty is all that a model learns from."""
    ways = [f"a warm start ({warm_start(config)})"]
    if not config.legal_only:
        ways.append("legal_only = true, which leaves no answer to charge a penalty for")
    ways.append(f"a larger entropy_coefficient (now {config.entropy_coefficient:g})")
    if config.format_penalty:
        ways.append(
            f"format_penalty = 0 (now {config.format_penalty:g}) with invalid_action = 'random' (now "
            f"{config.invalid_action!r})"
        )
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _has_planner(name: str) -> bool:
    return find_search_player(_game(name)) is not None


def _lists_actions(name: str) -> bool:
    return bool(_game(name).actions)


def _game(name: str) -> TSMG[Any]:
    task = EpisodeTask.of(name, 0)
    return game_of(task.env_id, **task.kwargs)


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
