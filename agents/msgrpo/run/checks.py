"""What a run looks at before its first episode, so that it doesn't find out later."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from agents.episode import EpisodeTask
from agents.files import check_writable
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError, UnusableModelError
from agents.msgrpo.run.evaluation import game_name
from agents.msgrpo.trajectories import Game, first_prompts, too_long
from agents.prompt import PromptMap


def check_prompts(
    config: MSGRPOConfig, games: Sequence[Game], prompt_map: PromptMap, reader: TransformersModel
) -> None:
    """Every player's first prompt of every game fits, with a response behind it.

    Raises:
        ConfigError: one is longer than ``max_prompt_tokens``.
        UnusableModelError: the model's context is too short for it.
    """
    for game in [*games, *config.eval_scenarios]:
        longest = max(map(len, reader.encode(first_prompts(EpisodeTask.of(game, 0), prompt_map))))
        if longest > config.max_prompt_tokens:
            raise too_long(longest, config.max_prompt_tokens)
        context = reader.context_length
        if context is not None and longest + config.max_response_tokens > context:
            raise UnusableModelError(
                f"{game_name(game)}: its prompt has {longest} tokens, max_response_tokens is "
                f"{config.max_response_tokens} and the model's context {context}: too little room"
            )


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
