"""The wording of prompts as data: ``prompts/default.toml``, or a file of one's own."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from agents.common.files import reason_of
from agents.common.reading import read_text
from textgames.names import did_you_mean

PLACEHOLDERS = ("instructions", "observation", "actions", "player", "steps_left", "memory", "reason")
CARD_NAME, CARD_PROMPTS = "textbench.json", "prompts"
"""The file in a trained model's folder that says how it was asked (:mod:`agents.models.local.loading.card`), and where
its texts stand there."""
_NEEDED = ("system", "opening", "observation", "response", "no_actions", "no_limit")
_TABLES = ("response", "open_response", "prefix", "reasons", "reworded")
_STREAM_OF_WORDINGS = 20261123


@dataclass(frozen=True)
class PromptTexts:
    """The wording of prompts; ``prompts/default.toml`` says what each part is for.

    A ValueError names an unknown or missing placeholder, or wordings that can't stand for each other.
    """

    system: str  #: the system message; empty for none
    opening: str  #: stands before the first observation
    observation: str  #: wraps one observation
    response: Mapping[str, str]  #: ``{mode: response template}``
    no_actions: str  #: ``$actions`` if the legal actions aren't known
    no_limit: str  #: ``$steps_left`` if there is no limit
    #: for decisions whose actions can't be listed; else ``response``
    open_response: Mapping[str, str] = field(default_factory=dict)
    #: ``{mode: the beginning of a response}``, which the model continues
    prefix: Mapping[str, str] = field(default_factory=dict)
    #: stands behind every observation, if there is a limit; cards of older models have none
    clock: str = ""  # records and cards of models from before there was a clock don't have it
    cut_at: str = ""  #: an observation ends before this text, for models that read no drawn board; empty for none
    leave_out: str = ""  #: beginnings of lines of an observation that aren't shown, one a line. Empty for none.
    memory: str = ""  #: the name of a tag: ``$memory`` is what the player wrote in it last. Empty for none.
    no_memory: str = "nothing yet"  #: what ``$memory`` says before that
    unlisted: str = ""  #: ``$actions`` if the legal moves aren't to be listed; empty for the package's own words
    complaint: str = ""  #: follows a response that can't be read, if the player may answer again; empty likewise
    reasons: Mapping[str, str] = field(default_factory=dict)  #: ``{reason: $reason of a complaint}``; likewise
    reworded: Mapping[str, str] = field(default_factory=dict)  #: ``{words of a game's rules today: those of before}``
    #: texts of equal content: an episode takes one by its seed
    wordings: Mapping[str, "PromptTexts"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_placeholders()
        for name, texts in self.wordings.items():
            for part in ("memory", "prefix"):
                if (theirs := getattr(texts, part)) != (ours := getattr(self, part)):
                    raise ValueError(f"wordings.{name} has {part} = {theirs!r} where the file has {ours!r}")
            if texts.response.keys() != self.response.keys():
                theirs, ours = ", ".join(texts.response), ", ".join(self.response)
                raise ValueError(f"wordings.{name} has the modes {theirs} where the file has {ours}")

    def _check_placeholders(self) -> None:
        parts = {"system": self.system, "opening": self.opening, "observation": self.observation, "clock": self.clock}
        parts |= {"complaint": self.complaint}
        for table in _TABLES:
            texts = {mode: text.strip("\n") for mode, text in getattr(self, table).items()}
            object.__setattr__(self, table, texts)
            parts |= {f"{table}.{mode}": text for mode, text in texts.items()}
        used = {part: _placeholders(part, text) for part, text in parts.items()}
        if "observation" not in used["observation"]:
            raise ValueError(f"observation must contain $observation, got {self.observation!r}")
        if "instructions" not in used["system"] | used["opening"]:
            raise ValueError(
                "opening (or system) must contain $instructions, which becomes the rules of the game; "
                f"got opening = {self.opening!r}, system = {self.system!r}"
            )
        for part in parts.keys() - {"observation"}:
            if "observation" in used[part]:
                raise ValueError(f"$observation belongs in observation only, it also stands in {part}")
            if "reason" in used[part] and part != "complaint":
                raise ValueError(f"$reason belongs in complaint only, it also stands in {part}")
        for mode, text in self.prefix.items():
            if mode not in self.response:
                raise ValueError(f"prefix.{mode} is of no mode: response has {', '.join(self.response)}")
            if used[f"prefix.{mode}"] or text != text.strip():
                raise ValueError(
                    f"prefix.{mode} is the beginning of a response, as it is written: without placeholders, and "
                    f"without space around it, which chat templates cut off; got {text!r}"
                )
        shown = any("memory" in placeholders for placeholders in used.values())
        if shown != bool(self.memory):
            raise ValueError(
                f"$memory shows what stands in the tag that memory names: use both or neither; got memory = "
                f"{self.memory!r} and {'a' if shown else 'no'} text with $memory"
            )
        if not self.response:
            raise ValueError("response needs at least one mode, such as response.think")

    @classmethod
    @cache
    def default(cls) -> "PromptTexts":
        """Return the texts that ship with the package, which are read once."""
        return cls(**_read(_packaged("default")))  # whatever lies in the working directory by that name

    def as_data(self) -> dict[str, Any]:
        """Return the texts as plain data, as they would stand in a file."""
        plain: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value or one.name in (*_NEEDED, "open_response"):
                plain[one.name] = dict(value) if one.name in _TABLES else value
        if not self.memory:
            del plain["no_memory"]
        if self.wordings:
            plain["wordings"] = {name: texts.as_data() for name, texts in self.wordings.items()}
        return plain

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "PromptTexts":
        """Make texts of what :meth:`as_data` gave; a ValueError if they aren't whole, or hold something else."""
        _check_data(data)
        if missing := [key for key in _NEEDED if key not in data]:
            raise ValueError(f"prompts without {', '.join(missing)}")
        wordings = {name: cls.from_data(own) for name, own in data.get("wordings", {}).items()}
        return cls(**{**data, "wordings": wordings})

    @classmethod
    def from_file(cls, path: str | Path) -> "PromptTexts":
        """Read a TOML file of the form of ``prompts/default.toml``, or one of those that ship, by its name.

        What it leaves out stays as in that file. A trained model's folder or ``textbench.json`` has the whole texts of
        its training. A ValueError names the file.
        """
        data = _read(prompt_path(path))
        try:
            if CARD_PROMPTS in data:
                return cls.from_data(data[CARD_PROMPTS])
            _check_data(data)
            theirs = data.pop("wordings", {})
            texts = _completed(data, cls.default().as_data())
            wordings = {name: cls(**_completed(own, texts)) for name, own in theirs.items()}
            return cls(**texts, wordings=wordings)
        except ValueError as error:
            raise ValueError(f"prompt file {str(path)!r}: {error}") from None

    def read_in(self, mode: str) -> dict[str, Any]:
        """Return the texts that a prompt in one response mode is made of; others may differ without effect."""
        never = ("unlisted", "complaint", "reasons", "reworded")
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in never}
        plain |= {table: plain[table].get(mode) for table in ("response", "open_response", "prefix")}
        return plain | {"wordings": {name: texts.read_in(mode) for name, texts in self.wordings.items()}}

    def of_seed(self, seed: int) -> "PromptTexts":
        """Return the texts that prompt an episode with this seed: one of the wordings, or these if there are none."""
        return self.wordings[wording_of(seed, tuple(self.wordings))] if self.wordings else self


def wording_of(seed: int, names: Sequence[str]) -> str:
    """Return which of several wordings an episode with this seed has, in whatever order they are named.

    Blocks of seeds have each wording once, so a run of consecutive seeds has each equally often, up to two.
    """
    block, place = divmod(int(seed), len(names))
    order = np.random.default_rng([_STREAM_OF_WORDINGS, block]).permutation(len(names))
    return sorted(names)[int(order[place])]


def packaged_prompts() -> tuple[str, ...]:
    """List the names of the files of prompts that ship."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in files("agents").joinpath("prompts").iterdir()))


def prompt_path(name: str | Path) -> Path:
    """Return the path of a file of prompts, of a model's folder, or of prompts that ship, by their name."""
    if Path(name).is_dir():
        return Path(name) / CARD_NAME
    if not Path(name).exists() and str(name) in packaged_prompts():
        return _packaged(str(name))
    return Path(name)


def _packaged(name: str) -> Path:
    return Path(str(files("agents").joinpath(f"prompts/{name}.toml")))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
        # told by its content: a run keeps the file that it was given, under a name of its own
        data: dict[str, Any] = json.loads(text) if text.startswith("{") else tomllib.loads(text)
        return data
    except (OSError, ValueError, RecursionError) as error:
        ships = ", ".join(packaged_prompts())
        near = did_you_mean(str(path), packaged_prompts())
        raise ValueError(
            f"can't read the prompt file {str(path)!r}{near}: {reason_of(error)}; by name there are {ships}"
        ) from None


def _check_data(data: Mapping[str, Any]) -> None:
    """Refuse unknown keys and wrong types, which would otherwise come out as wrong prompts."""
    known = [one.name for one in fields(PromptTexts)]
    for key, value in data.items():
        if key not in known:
            raise ValueError(f"unknown key {key!r}{did_you_mean(key, known)}; the keys are {', '.join(known)}")
        inside = str if key in _TABLES else dict
        if key not in (*_TABLES, "wordings"):
            if not isinstance(value, str):
                raise ValueError(f"{key} must be a text, got {value!r}")
        elif not isinstance(value, dict) or not all(isinstance(each, inside) for each in value.values()):
            what = "tables, one per wording" if inside is dict else "texts, one per mode"
            raise ValueError(f"{key} must be a table of {what}, got {value!r}")
    for name, own in data.get("wordings", {}).items():
        if "wordings" in own:
            raise ValueError(f"wordings.{name} has wordings of its own, and is to be one")
        try:
            _check_data(own)
        except ValueError as error:
            raise ValueError(f"wordings.{name}: {error}") from None


def _completed(own: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Complete some texts with others; but add no clock if they show the moves left in their own way."""
    others = {**others, "clock": ""} if shows_steps_left(own) else others
    return {**others, **own, **{table: {**others.get(table, {}), **own.get(table, {})} for table in _TABLES}}


def shows_steps_left(data: Mapping[str, Any]) -> bool:
    """Return whether texts say somewhere how many moves are left."""
    return any(written in repr(data) for written in ("$steps_left", "${steps_left}"))


def _placeholders(part: str, text: str) -> set[str]:
    """Return the placeholders of a text; a ValueError for one that doesn't exist, or for a lone dollar sign."""
    template = Template(text)
    if not template.is_valid():
        raise ValueError(f"{part} has a lone dollar sign; write $$ for one that should stay")
    used = set(template.get_identifiers())
    for name in used:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"${placeholder}" for placeholder in PLACEHOLDERS)
            raise ValueError(
                f"{part} has the unknown placeholder ${name}{did_you_mean(name, PLACEHOLDERS)}; there are {known}"
            )
    return used


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in the placeholders of a part of the texts."""
    return Template(text).substitute(values) if text else ""
