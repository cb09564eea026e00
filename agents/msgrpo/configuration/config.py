"""The configuration of a training run: :class:`MSGRPOConfig`, its TOML files, its ``--set`` overrides, its errors.

A file may group its keys in ``[section]`` tables, as :meth:`MSGRPOConfig.to_toml` does, or hold them flat. With
``preset = "dr_grpo"`` above them it begins with a published method's settings, and its own keys change them;
``--set preset=dr_grpo`` changes a file's settings to those of the method, and other overrides count more.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from agents.common.refusals import accepted, refusals
from agents.common.toml import read_setting, read_toml, to_toml
from agents.msgrpo.configuration.fields import POINTS, RENAMED
from agents.msgrpo.configuration.presets import layered, preset
from agents.msgrpo.configuration.recipes import no_such_recipe, recipe_path
from agents.msgrpo.configuration.settings import TrainingSettings
from agents.msgrpo.errors import ConfigError
from textgames.names import nearest_or_all


class MSGRPOConfig(TrainingSettings):
    """The settings of one run; immutable and checked when made. :class:`TrainingSettings` documents each of them.

    Raises:
        ConfigError: a value of the wrong type or outside what its field accepts, a name that is no setting, or values
            that contradict each other.
    """

    if not TYPE_CHECKING:  # type checkers are to see the fields, which this signature would hide

        def __init__(self, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                wrong = refusals(error, settings, _properties(), _not_a_setting, _accepted)
                raise ConfigError("\n".join(wrong)) from None

        def __setattr__(self, name: str, value: Any) -> None:  # a frozen class leaves other names to its subclasses
            raise FrozenInstanceError(f"a config doesn't change: dataclasses.replace(config, {name}=...) makes another")

    @classmethod
    def preset(cls, name: str, **settings: Any) -> "MSGRPOConfig":
        """The settings of a published method, such as ``"dr_grpo"``; those given here count more than the method's.

        Raises:
            ConfigError: no such preset, and everything that the constructor refuses.
        """
        return cls(**layered(preset(name), settings))

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> "MSGRPOConfig":
        """Make a config from ``{key: value}``, where a value may be a ``{key: value}`` section of the same keys.

        ``preset`` among them names a published method, whose settings hold where the others say nothing.
        """
        flat: dict[str, Any] = {}
        tables: dict[str, Any] = {}
        for key, value in settings.items():
            if isinstance(value, Mapping) and key in POINTS:
                tables[key] = {name: dict(own) if isinstance(own, Mapping) else own for name, own in value.items()}
                continue
            if isinstance(value, Mapping) and key not in sections():
                raise ConfigError(f"[{key}] is not a section; {nearest_or_all(key, sections())}")
            for name, setting in (value if isinstance(value, Mapping) else {key: value}).items():
                if name in flat:
                    raise ConfigError(f"{name} is set twice: {flat[name]!r} and {setting!r}")
                flat[name] = setting
        if tables:
            flat["method_settings"] = {**_table("method_settings", flat.get("method_settings", {})), **tables}
        named = flat.pop("preset", None)
        return cls(**flat) if named is None else cls.preset(named, **flat)

    @classmethod
    def from_toml(cls, path: str | Path, overrides: Iterable[str] = ()) -> "MSGRPOConfig":
        """Read a file, or a recipe that ships by its name, then apply ``key=value`` overrides.

        Raises:
            ConfigError: a file that can't be read or isn't TOML, and everything that the constructor refuses.
        """
        file = recipe_path(path)
        advice = "" if file.exists() else no_such_recipe(path)
        try:
            settings = read_toml(file, f"the config {str(path)!r}", ConfigError, advice)
        except ConfigError as error:
            if "overwrite a value" in str(error):  # credit = "gigpo" beside [credit.gigpo]
                error.add_note("A setting with a table of its name stands in its section: put credit into [advantages]")
            raise
        return cls.from_mapping(settings).with_overrides(overrides)

    def with_overrides(self, overrides: Iterable[str]) -> "MSGRPOConfig":
        """The same settings with ``key=value`` strings applied, read by :func:`agents.common.toml.read_value`."""
        changes: dict[str, Any] = {}
        tables: dict[str, Any] = {}
        published: dict[str, Any] = {}
        for override in overrides:
            name, value = read_setting(override, "key=value, as in --set learning_rate=1e-5", ConfigError)
            if _has_null(value):
                raise ConfigError(f"--set {override}: there is no null in TOML; leave the setting out")
            point, *path = name.split(".")
            if point in POINTS and len(path) >= 2:  # a class is named with its module, which may have dots
                method = ".".join(path[:-1]).strip('"')
                tables.setdefault(point, {}).setdefault(method, {})[path[-1]] = value
            elif name in _properties():
                changes[name] = value
            elif point in ("engine_options", "chat_template_kwargs", "around_options") and len(path) == 1:
                changes[point] = {**_table(point, changes.get(point, getattr(self, point))), path[0]: value}
            elif name == "preset":
                published = preset(value)
            else:
                raise ConfigError(f"--set {override}: {_not_a_setting(name)}")
        own = _table("method_settings", changes.get("method_settings", {}))
        if own or tables:
            changes["method_settings"] = layered(own, tables)
        changes = layered(published, changes)
        if "method_settings" in changes:
            changes["method_settings"] = layered(self.method_settings, changes["method_settings"])
        return replace(self, **changes)

    def to_toml(self, *, documented: bool = False) -> str:
        """The settings as TOML in sections; ``documented`` puts each field's description above it."""
        lines: list[str] = []
        for section in sections():
            if section == "methods":
                continue  # they have tables of their own, below
            lines += ["", f"[{section}]"]
            for name, about in _properties().items():
                if about["section"] == section:
                    lines += [f"# {describe(name)}"] if documented else []
                    lines.append(f"{name} = {to_toml(getattr(self, name))}")
        for point, methods in self.method_settings.items():
            for name, own in methods.items():
                lines += ["", f"[{point}.{json.dumps(name)}]"]
                lines += [f"{setting} = {to_toml(value)}" for setting, value in own.items()]
        return "\n".join(lines[1:]) + "\n"

    def differences(self, other: "MSGRPOConfig") -> dict[str, tuple[Any, Any]]:
        """``{name: (own value, other's value)}`` of the settings in which two configs differ."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _properties()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _table(name: str, value: object) -> Mapping[str, Any]:
    """What is to be added to; what isn't a table is refused before the others are, as nothing can be added to it."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} = {value!r} can't be used; accepted: a table")
    return value


@cache
def training_config_schema() -> dict[str, Any]:
    """The JSON Schema of the settings, flat; ``section`` says in which TOML table a setting stands."""
    schema = TypeAdapter(TrainingSettings).json_schema()
    for about in schema["properties"].values():
        about["description"] = " ".join(about["description"].split())
    return schema | {"title": "MSGRPOConfig", "$schema": "https://json-schema.org/draft/2020-12/schema"}


def sections() -> tuple[str, ...]:
    """The TOML tables that settings stand in, in order."""
    return tuple(dict.fromkeys(about["section"] for about in _properties().values()))


def describe(name: str) -> str:
    """A setting's documentation and what it accepts, in one line."""
    return f"{_properties()[name]['description']} Accepted: {_accepted(name)}."


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


def _accepted(name: str) -> str:
    about = _properties()[name]
    if "point" in about:
        return f"{', '.join(POINTS[about['point']].names)}, or my_module:MyClass"
    return "tables of settings" if about.get("type") == "object" else accepted(about)
