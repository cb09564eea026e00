"""What a run looks at before its first episode, so that it doesn't find out later."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.common.files import check_writable
from agents.episode import EpisodeTask
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError, UnusableModelError
from agents.msgrpo.run.evaluating.evaluation import game_name
from agents.msgrpo.trajectories import Game, prompts_of_random_play, too_long
from agents.prompt import PromptMap

RANDOM_EPISODES = 4
"""Whole episodes of random play whose prompts are measured: a game's prompts may grow while it is played."""
LONGEST_READ = 8
"""Of an episode's prompts, so many of the longest in letters are measured in tokens."""


def check_prompts(
    config: MSGRPOConfig, games: Sequence[Game], prompt_map: PromptMap, reader: TransformersModel
) -> None:
    """Every player's prompts of every game fit, with a response behind them, as far as random play tells.

    Raises:
        ConfigError: one is longer than ``max_prompt_tokens``.
        UnusableModelError: the model's context is too short for it.
    """
    shorter: dict[str, Any] = {"max_steps": config.max_steps} if config.max_steps else {}
    places = [(game, shorter) for game in games] + [(game, {}) for game in config.eval_scenarios]
    for game, settings in places:
        tasks = [EpisodeTask.of(game, seed, **settings) for seed in range(RANDOM_EPISODES)]
        longest = max(length for task in tasks for length in prompt_lengths(task, prompt_map, reader))
        if longest > config.max_prompt_tokens:
            raise too_long(longest, config.max_prompt_tokens)
        context = reader.context_length
        if context is not None and longest + config.max_response_tokens > context:
            raise UnusableModelError(
                f"{game_name(game)}: its prompt has {longest} tokens, max_response_tokens is "
                f"{config.max_response_tokens} and the model's context {context}: too little room"
            )


def prompt_lengths(task: EpisodeTask, prompt_map: PromptMap, reader: TransformersModel) -> list[int]:
    """The lengths in tokens of the first prompt and the longest ones of an episode of random play."""
    prompts = [prompt for _, prompt in prompts_of_random_play(task, prompt_map)]
    by_letters = sorted(prompts, key=lambda prompt: -sum(len(message.content) for message in prompt))
    return [len(ids) for ids in reader.encode(prompts[:1] + by_letters[:LONGEST_READ])]


def check_out(out: Path, *, resumed: bool = False) -> None:
    """A run's folder can be written, and a new run doesn't write into another one's.

    Raises:
        ConfigError: the folder holds a run.
        OSError: it can't be made or written.
    """
    check_writable(out)
    metrics = out / "metrics.jsonl"
    if resumed or not metrics.exists() or not metrics.stat().st_size:
        return
    if (out / "last").exists():
        raise ConfigError(
            f"out = {str(out)!r} already holds a run: go on with --resume {shlex.quote(str(out))}, or choose another "
            "folder"
        )
    raise ConfigError(
        f"out = {str(out)!r} holds the metrics of a run that was stopped before its first checkpoint, and can't go on: "
        f"remove the folder, or choose another one"
    )
