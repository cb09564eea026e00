"""What a training's folder names that only its user can allow: code, servers, money, downloads, files, trackers.

A resumed training has its settings from a file in the folder, which may be anybody's.
"""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agents.claims import claim_of_fetching, claims_of_player, is_harmless, is_own_prompts
from agents.common.approvals import Claim, approve, content_digest, open_claims, refusal
from agents.common.toml import read_value
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.wrappers import innermost

PLACES = ("model", "tokenizer", "device", "prompt_file", "out", "tracker_project", "tracker_run", "around_options")
"""Settings whose texts are files, hubs' names and devices: read as data, and never imported."""
MADE_HERE = ("", "tiny-quick", "tiny-legal")
"""Models that are made and not fetched."""
LOCAL_TRACKERS = ("tensorboard",)
"""Trackers that write into the training's folder; others send what they are told, with the user's key."""

PLAYERS = ("eval_opponent", "around")
"""Settings in which ``hf:FOLDER`` is a model; in all others it is ``FOLDER`` of a module that is called ``hf``."""


def claims_of(config: MSGRPOConfig, folder: Path | None = None) -> list[Claim]:
    """Return all claims of a config, in ``folder`` if it is from there.

    These are code, servers and paid models among its texts, what would be fetched, all of an engine's options, and what
    its prompts, its trackers and the options of the players around the model read or send.
    """
    named = [
        (name, one)
        for name, value in vars(config).items()
        if name not in PLACES
        for text in _texts(value)
        for one in innermost(text)
    ]
    spent = f" (in {config.iterations:,} iterations of {config.episodes:,} episodes, and in evaluations)"
    claims = [claim for _, one in named for claim in claims_of_player(one, spent, folder)]
    claims += [
        _claim(one, "the code") for name, one in named if name not in PLAYERS and ":" in one and "://" not in one
    ]
    for source in (config.model, config.tokenizer):
        claims += () if source in MADE_HERE else claim_of_fetching(source)
    if config.prompt_file and not is_own_prompts(config.prompt_file, folder):
        claims.append(_claim(config.prompt_file, "the prompts"))
    claims += [_claim(name, "the tracker") for name in config.trackers if name not in LOCAL_TRACKERS]
    claims += [_claim(f"engine_options.{name}={value}") for name, value in config.engine_options.items()]
    claims += [
        _claim(f"around_options.{name}={value}")
        for name, value in config.around_options.items()
        if not is_harmless(name, value, folder)
    ]
    return list(dict.fromkeys(claims))


def asked_for(config: MSGRPOConfig) -> str:
    """Return a digest of all that a config asks for, wherever its folder lies."""
    return content_digest({**vars(config), "out": ""})


def _claim(value: str, what: str = "") -> Claim:
    return Claim("--allow", value, f"{what} {value}".lstrip())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def said_by(overrides: Iterable[str]) -> list[str]:
    """What ``--set KEY=VALUE`` names: all of it, its value, and the texts in that."""
    said = []
    for override in overrides:
        name, _, text = override.partition("=")
        said += [override, text.strip(), name.strip(), *_texts(read_value(text.strip()))]
    return said


def check_claims(
    checkpoint: str,
    folder: Path,
    saved: MSGRPOConfig,
    config: MSGRPOConfig,
    named: MSGRPOConfig | None,
    allowed: Iterable[str],
) -> None:
    """Refuse to resume a folder that names what its user hasn't.

    Args:
        checkpoint: what ``--resume`` says.
        folder: the run's.
        saved: the settings that are there.
        config: with which it would be resumed.
        named: the settings of a file that this command line names.
        allowed: what it allows besides.

    Raises:
        ConfigError: with the command that allows all of it.
    """
    own = [] if named is None else claims_of(named)
    claims = claims_of(config, folder)
    missing = open_claims(folder, claims, [*own, *map(_claim, allowed)], asked_for(saved))
    if missing:
        raise ConfigError(refusal(folder, missing, f"python -m agents.msgrpo --resume {shlex.quote(checkpoint)}"))
    approve(folder, claims, asked_for(config))
