"""What a training's folder names that only its user can allow: code, servers, and what an engine is started with.

A resumed training has its settings from a file in the folder, which may be anybody's.
"""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agents.common.approvals import Claim, approve, open_claims, refusal
from agents.common.toml import read_value
from agents.models.provider import find_model
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.errors import ConfigError
from agents.wrappers import innermost

PLACES = ("model", "tokenizer", "device", "prompt_file", "out", "tracker_project", "tracker_run")
"""Settings whose texts are files, hubs' names and devices: read as data, and never imported."""


def claims_of(config: MSGRPOConfig) -> list[Claim]:
    """All claims of a config: texts of the form ``module:Name``, addresses, and all of an engine's options."""
    texts = [text for name, value in vars(config).items() if name not in PLACES for text in _texts(value)]
    texts = [one for text in texts for one in innermost(text)]  # of a player around others, those inside
    named = [text for text in texts if ":" in text and not _is_model(text)]
    named += [f"engine_options.{name}={value}" for name, value in config.engine_options.items()]
    return [Claim("--allow", text, text) for text in dict.fromkeys(named)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _is_model(spec: str) -> bool:
    """Whether it is a model of a provider of the project's, ``hf:FOLDER``, and no address."""
    try:
        return "://" not in spec and find_model(spec) is not None
    except ValueError:
        return False


def said_by(overrides: Iterable[str]) -> list[str]:
    """What ``--set KEY=VALUE`` names: all of it, its value, and the texts in that."""
    said = []
    for override in overrides:
        name, _, text = override.partition("=")
        said += [override, text.strip(), name.strip(), *_texts(read_value(text.strip()))]
    return said


def check_claims(
    checkpoint: str, folder: Path, config: MSGRPOConfig, named: MSGRPOConfig | None, allowed: Iterable[str]
) -> None:
    """Refuse to go on with a folder that names what its user hasn't.

    Args:
        checkpoint: what ``--resume`` says.
        folder: the run's.
        config: with which it would go on.
        named: the settings of a file that this command line names.
        allowed: what it allows besides.

    Raises:
        ConfigError: with the command that allows all of it.
    """
    own = [] if named is None else claims_of(named)
    claims = claims_of(config)
    missing = open_claims(folder, claims, [*own, *(Claim("--allow", text, text) for text in allowed)])
    if missing:
        raise ConfigError(refusal(folder, missing, f"python -m agents.msgrpo --resume {shlex.quote(checkpoint)}"))
    approve(folder, claims)
