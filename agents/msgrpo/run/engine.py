"""The engine that a run's settings name, made and checked together with the methods that use it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from agents.episode import EpisodeTask
from agents.models.base import Decoding
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.engines import ENGINES
from agents.msgrpo.engines.engine import Engine, EngineParts
from agents.msgrpo.engines.live import CopyEngine, LiveEngine
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.trajectories import Game
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from textgames import game_of


def make_engine(
    config: MSGRPOConfig,
    methods: Methods,
    model: nn.Module,
    tokenizer: Any,
    processes: Processes,
    autocast: torch.dtype | None,
    given: Engine | None = None,
) -> Engine:
    """The engine ``given``, or else the one that the config names.

    Raises:
        ConfigError: an engine that can't be used with these settings and methods, or options that it doesn't have.
    """
    _check(config, methods, given, processes.count)
    if given is not None:
        return given
    moving = processes.sharded or autocast is not None or config.staleness > 0
    dtype = autocast or next(model.parameters()).dtype
    parts = EngineParts(model, tokenizer, config, dtype, moving, processes.rank, processes.count)
    return ENGINES.make(config.engine, config.engine_options).build(parts)


def check_engine(config: MSGRPOConfig) -> None:
    """Say what an engine lacks before a model is made for it: options, and by its ``check(urls)``, if any, its package.

    Raises:
        ConfigError: options that it doesn't have.
        ModuleNotFoundError: its package isn't installed; the message has the command.
    """
    options: Any = ENGINES.make(config.engine, config.engine_options)
    if hasattr(options, "check"):
        options.check(config.engine_urls)


def policy_of(
    config: MSGRPOConfig, games: Sequence[Game], engine: Engine, prompt_map: PromptMap, decoding: Decoding
) -> LanguageAgentPolicy:
    """The model as it plays these games.

    Raises:
        ConfigError: ``legal_only`` with an engine that can't be constrained, or a game that doesn't list its actions.
    """
    try:
        policy = LanguageAgentPolicy(engine, prompt_map, decoding, legal_only=config.legal_only)
        for game in games:
            task = EpisodeTask.of(game, 0)
            policy.check_game(game_of(task.env_id, **task.kwargs))
    except ValueError as error:
        raise ConfigError(f"legal_only = {str(config.legal_only).lower()}: {error}") from None
    return policy


def samples_elsewhere(engine: Engine) -> bool:
    """Whether the engine computes with code of its own, so that its log-probabilities aren't exactly the learner's."""
    return not isinstance(engine, LiveEngine)


def _check(config: MSGRPOConfig, methods: Methods, given: Engine | None, processes: int) -> None:
    if given is not None and config.engine != "live":
        raise ConfigError(f"engine = {config.engine!r} and an engine object: accepted is one of them")
    if given is not None and not isinstance(given, Engine):
        raise ConfigError(
            f"an engine has a name, update_weights(weights, version) and generate or generate_async, got "
            f"{type(given).__name__}; see agents.msgrpo.engines.engine"
        )
    if not config.staleness:
        return
    if "rollouts" in methods.needs:
        raise ConfigError(
            f"staleness = {config.staleness} with credit = {config.credit!r}, which plays fresh rollouts by the newest "
            "weights while older ones are playing ahead; accepted: staleness = 0, or a method without fresh rollouts"
        )
    if config.staleness > 1 and processes > 1:
        raise ConfigError(
            f"staleness = {config.staleness} with {processes} learning processes, which can't agree on when older "
            "weights have arrived; accepted: staleness 0 or 1, or one process"
        )
    if isinstance(given, LiveEngine) and not isinstance(given, CopyEngine):
        raise ConfigError(
            f"staleness = {config.staleness} with an engine that samples from the weights that are trained; accepted: "
            "an engine with weights of its own (engine = 'live' makes a copy)"
        )
