"""The configuration of a training run: :class:`MSGRPOConfig`, its TOML files, its ``--set`` overrides, its errors.

A file may group its keys in ``[section]`` tables, as :meth:`MSGRPOConfig.to_toml` does, or hold them flat. With
``preset = "dr_grpo"`` above them it begins with a published method's settings, and its own keys change them;
``--set preset=dr_grpo`` changes a file's settings to those of the method, and other overrides count more.

A preset holds what makes the method, and ``paper`` all that the paper's first author trained with; sources are in
docs/research/credit/methods.md. Installed packages add mappings of presets by the group ``textbench.presets`` of entry
points.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import FrozenInstanceError, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from agents.common.refusals import accepted, refusals
from agents.common.toml import read_setting, read_toml, to_toml
from agents.msgrpo.configuration.settings import POINTS, RENAMED, TrainingSettings
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import load_entry
from textgames.names import did_you_mean, nearest_or_all
from textgames.plugins import installed, research_advice

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "msgrpo": {"episode_sampling": "aaw"},
    # arXiv 2508.10839's first author's code, github.com/jim-dilkes/Verlog: its settings, and none of its text
    "paper": {
        "lora_rank": 0,
        "groups": 2,
        "group_size": 16,
        "shared_chance": True,
        "temperature": 1.25,
        "response_mode": "think",
        "prompt_file": "paper",
        "max_prompt_tokens": 1500,
        "max_response_tokens": 256,
        "format_penalty": 1.0,
        "invalid_action": "default",
        "game": {"snake": {"step_reward": -0.01}},
        "method_settings": {"surrogate": {"ppo": {"dual_clip": 3.0}}},
        "loss_normalizer": "micro_batch",
        "entropy_coefficient": 0.001,
        "update_passes": 1,
        "minibatches": 2,
        "minibatch_order": "time",
        "learning_rate": 1e-6,
        "schedule": "constant",
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
        "eval_temperature": 0.5,
    },
    "rloo": {"credit": "rloo"},
    "dr_grpo": {"credit": "dr_grpo", "loss_normalizer": "constant"},
    "lite_ppo": {"credit": "lite_ppo"},
    "rtg": {"credit": "rtg"},
    "gigpo": {"credit": "gigpo"},
    "vine": {"credit": "vine"},
    "ppo_turn": {"credit": "ppo_turn"},
    "tppo": {"credit": "tppo"},
    "gspo": {"surrogate": "gspo", "loss_normalizer": "response"},  # it has clip limits of its own
    "cispo": {"surrogate": "cispo"},
    # its credit has its reward for length, and its sampler refills groups without a difference
    "dapo": {"credit": "dapo", "task_sampling": "dynamic", "clip_high": 0.28},
}

COMMON: Mapping[str, Any] = {
    "task_sampling": "plain",
    "reward": "game",
    "group_filter": "off",
    "credit": "msgrpo",
    "advantage_baseline": "mean",
    "advantage_scale": "group_std",
    "episode_sampling": "off",
    "surrogate": "ppo",
    "loss_normalizer": "token",
    "discount": "auto",
    "clip_low": "auto",
    "clip_high": "auto",
    "kl_coefficient": 0.0,
}
"""The settings of every method whose preset says nothing else."""


def presets() -> dict[str, Mapping[str, Any]]:
    """Return ``{preset: its settings}`` of those that ship, and then of installed packages."""
    found = dict(PRESETS)
    for entry in installed("textbench.presets").values():
        found |= {name: own for name, own in load_entry(entry, "preset").items() if name not in PRESETS}
    return found


def preset(name: str) -> dict[str, Any]:
    """Return a preset's settings as a file would have them, or raise a :class:`ConfigError` if there is none."""
    known = presets()
    if name not in known:
        raise ConfigError(f"preset = {name!r} is not one; {nearest_or_all(str(name), tuple(known))}{research_advice()}")
    return layered(COMMON, known[name])


def layered(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay settings over others: ``above`` counts more, and tables are laid over each other in the same way."""
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        result[key] = layered(under, value) if both else value  # type: ignore[arg-type]
    return result


_IN_WHEEL, _IN_CLONE = (Path(__file__).parents[above] / "configs" for above in (1, 3))


def packaged_recipes() -> dict[str, Path]:
    """Return ``{name: file}`` of the trainings that ship, in a wheel or in a clone."""
    return {file.stem: file for file in sorted((_IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CLONE).glob("*.toml"))}


def recipe_path(given: str | Path) -> Path:
    """Return the file at a path; if there is none, the recipe of that name, as ``configs/NAME.toml`` in a clone."""
    path = Path(given)
    if path.is_file() or path.parent not in (Path(), Path("configs")):
        return path
    return packaged_recipes().get(path.name.removesuffix(".toml"), path)


class MSGRPOConfig(TrainingSettings):
    """The settings of one run, which :class:`TrainingSettings` documents; a ConfigError refuses what can't be."""

    if not TYPE_CHECKING:  # type checkers are to see the fields, which this signature would hide

        def __init__(self, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                wrong = refusals(error, settings, _accepting(), _not_a_setting)
                raise ConfigError("\n".join(wrong)) from None

        def __setattr__(self, name: str, value: Any) -> None:  # a frozen class leaves other names to its subclasses
            raise FrozenInstanceError(f"a config is frozen: dataclasses.replace(config, {name}=...) makes another")

    @classmethod
    def preset(cls, name: str, **settings: Any) -> "MSGRPOConfig":
        """Return the settings of a published method, such as ``"dr_grpo"``; those that are given count more."""
        return cls(**layered(preset(name), settings))

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> "MSGRPOConfig":
        """Make a config of ``{key: value}``; a value may be a section of such pairs, and a key ``preset``."""
        flat: dict[str, Any] = {}
        tables: dict[str, Any] = {}
        for key, value in settings.items():
            is_table = isinstance(value, Mapping)
            if is_table and key in POINTS:
                tables[key] = {name: dict(own) if isinstance(own, Mapping) else own for name, own in value.items()}
                continue
            if is_table and _is_table(key):
                flat[key] = dict(value)  # a setting that is a table, such as [game]
                continue
            if is_table and key not in sections():
                raise ConfigError(f"[{key}] is not a section; {nearest_or_all(key, sections())}")
            for name, setting in (value if is_table else {key: value}).items():
                if name in flat:
                    raise ConfigError(f"{name} is set twice: {flat[name]!r} and {setting!r}")
                flat[name] = setting
        if tables:
            flat["method_settings"] = {**_table("method_settings", flat.get("method_settings", {})), **tables}
        named = flat.pop("preset", None)
        return cls(**flat) if named is None else cls.preset(named, **flat)

    @classmethod
    def from_toml(cls, path: str | Path, overrides: Iterable[str] = ()) -> "MSGRPOConfig":
        """Read a file, or a recipe that ships by its name, then apply ``key=value`` overrides."""
        file = recipe_path(path)
        known = () if file.exists() else tuple(packaged_recipes())
        near = did_you_mean(Path(path).name.removesuffix(".toml"), known)
        advice = f"{near}; by name there are {', '.join(known)}" if known else ""
        try:
            settings = read_toml(file, f"the config {str(path)!r}", ConfigError, advice)
        except ConfigError as error:
            if "overwrite a value" in str(error):  # credit = "gigpo" beside [credit.gigpo]
                error.add_note("A setting with a table of its name stands in its section: put credit into [advantages]")
            raise
        return cls.from_mapping(settings).with_overrides(overrides)

    def with_overrides(self, overrides: Iterable[str]) -> "MSGRPOConfig":
        """Return the same settings with ``key=value`` strings applied."""
        changes: dict[str, Any] = {"method_settings": {}}
        published: dict[str, Any] = {}
        for override in overrides:
            name, value = read_setting(override, "key=value, as in --set learning_rate=1e-5", ConfigError)
            if _has_null(value):
                raise ConfigError(f"--set {override}: there is no null in TOML; leave the setting out")
            point, *path = name.split(".")
            if point in POINTS and len(path) >= 2:  # a class is named with its module, which may have dots
                name, point, path = "", "method_settings", [point, ".".join(path[:-1]).strip('"'), path[-1]]
            if name in _properties():
                changes[name] = value
            elif path and _is_table(point):
                for part in reversed(path):
                    value = {part: value}
                changes[point] = layered(_table(point, changes.get(point, getattr(self, point))), value)
            elif name == "preset":
                chosen = preset(value)
                published = layered({each: getattr(self, each) for each in chosen}, chosen)
            else:
                raise ConfigError(f"--set {override}: {_not_a_setting(name)}")
        told = layered(published, changes)
        methods = layered(self.method_settings, _table("method_settings", told["method_settings"]))
        return replace(self, **{**told, "method_settings": methods})

    def to_toml(self, *, documented: bool = False) -> str:
        """Return the settings as TOML in sections; ``documented`` puts each field's description above it."""
        lines: list[str] = []
        for section in sections():
            if section == "methods":
                continue  # they have tables of their own, below
            lines += ["", f"[{section}]"]
            for name, about in _properties().items():
                if about["section"] == section:
                    lines += [f"# {describe(name)}"] if documented else []
                    own = self.game if name == section == "game" else {name: getattr(self, name)}
                    lines += [f"{key} = {to_toml(value)}" for key, value in own.items()]
        for point, methods in self.method_settings.items():
            for name, own in methods.items():
                lines += ["", f"[{point}.{json.dumps(name)}]"]
                lines += [f"{setting} = {to_toml(value)}" for setting, value in own.items()]
        return "\n".join(lines[1:]) + "\n"

    def differences(self, other: "MSGRPOConfig") -> dict[str, tuple[Any, Any]]:
        """Return ``{name: (own value, other's value)}`` of the settings in which two configs differ."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in _properties())
        return {name: (own, others) for name, own, others in pairs if own != others}

    def departures(self) -> dict[str, Any]:
        """Return ``{name: the author's value}`` of the settings that aren't as in the preset ``paper``.

        A game's settings count if the run names no scenarios or one of that name.
        """
        own, his = dict(_leaves(vars(self))), preset("paper")
        if self.scenarios:
            his["game"] = {game: settings for game, settings in his["game"].items() if game in self.scenarios}
        return {name: value for name, value in _leaves(his) if own.get(name) != value}


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        inner = "" if name == "method_settings" else f"{above}{name}."
        yield from _leaves(value, inner) if isinstance(value, Mapping) else [(f"{above}{name}", value)]


def _table(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be a table, got {value!r}")
    return value


@cache
def training_config_schema() -> dict[str, Any]:
    """Return the JSON Schema of the settings, flat; ``section`` says in which TOML table a setting stands."""
    schema = TypeAdapter(TrainingSettings).json_schema()
    for about in schema["properties"].values():
        about |= {"description": " ".join(about["description"].split())}
    return schema | {"title": "MSGRPOConfig", "$schema": "https://json-schema.org/draft/2020-12/schema"}


def sections() -> tuple[str, ...]:
    """Return the TOML tables that settings stand in, in order."""
    return tuple(dict.fromkeys(about["section"] for about in _properties().values()))


def describe(name: str) -> str:
    """Return a setting's documentation and what it accepts, in one line."""
    return f"{_properties()[name]['description']} Accepted: {accepted(_accepting()[name])}."


def _is_table(name: str) -> bool:
    return _properties().get(name, {}).get("type") == "object"


def _has_null(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_null, parts))


def _properties() -> dict[str, dict[str, Any]]:
    properties: dict[str, dict[str, Any]] = training_config_schema()["properties"]
    return properties


def _not_a_setting(name: str) -> str:
    if name in RENAMED:
        return f"{name} is not a setting; it is called {RENAMED[name]}"
    return f"{name} is not a setting; {nearest_or_all(name, _properties())}"


def _accepting() -> dict[str, dict[str, Any]]:
    return {
        name: {"anyOf": [{"enum": POINTS[about["point"]].names}, {"const": "my_module:MyClass"}]}
        if "point" in about
        else about
        for name, about in _properties().items()
    }
