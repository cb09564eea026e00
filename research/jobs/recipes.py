"""Recipes of experiments: TOML files that are read into frozen records, and how two of them differ."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.common.refusals import problem_of
from agents.common.toml import read_toml
from benchmark.errors import UsageError, unknown_name

Model = TypeVar("Model", bound=BaseModel)
Table = Mapping[str, Any]
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Field(strict=True, ge=1)]

TUNING_SEED = 1000
"""Of runs that tune: a seed that no other run has."""


class ExperimentSettings(BaseModel):
    """The settings of an experiment: everything that decides its outcome, as a frozen record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seeds: PositiveCount

    def as_data(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """``{setting: (own value, other's value)}`` against another experiment's data; nested settings with dots."""
        return differences_of(self.as_data(), other)

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """The differences that only add work: more seeds."""
        before = other.get("seeds")
        return ["seeds"] if isinstance(before, int) and self.seeds > before else []


def read_recipe(source: str | Path, shipped: Sequence[str], package: str) -> dict[str, Any]:
    """The content of a recipe: one of those that are ``shipped`` in the package's folder ``recipes``, or a TOML file.

    Raises:
        UsageError: no such recipe, or it isn't TOML.
    """
    file = files(package).joinpath(f"recipes/{source}.toml") if str(source) in shipped else Path(source)
    return read_toml(file, f"the recipe {str(source)!r}", UsageError, f"; there are {', '.join(shipped)}")


def is_recipe_of(kind: str, source: str | Path, shipped: Sequence[str]) -> bool:
    """Whether a recipe, by name or as a file, is of an experiment whose recipes say ``kind``."""
    file = Path(source)
    named = file.suffix == ".toml" and file.is_file()
    return str(source) in shipped or (
        named and read_toml(file, f"the recipe {str(source)!r}", UsageError).get("kind") == kind
    )


def checked_recipe(model: type[Model], data: Mapping[str, Any], source: str | Path, called: str) -> Model:
    """A recipe's content as the record of its experiment, which an error calls ``called``.

    Raises:
        UsageError: an unknown setting, or a value that can't be.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            raise unknown_name(f"setting of {called} (in {source})", str(first["loc"][0]), model.model_fields) from None
        raise UsageError(f"{source}: {problem_of(error)}") from None


def with_changes(data: Mapping[str, Any], changes: Mapping[str, Any] | None, chosen: Sequence[str]) -> dict[str, Any]:
    """A recipe's content with the command line's changes, where ``None`` changes nothing.

    ``chosen`` are the settings, tables or lists, of which a change names what is kept. Tables keep the recipe's order,
    as the first arm is the one that others are beside.

    Raises:
        UsageError: the recipe has none of that name.
    """
    values = {name: value for name, value in (changes or {}).items() if value is not None}
    for name in chosen:
        known = data.get(name, ())
        for kept in values.get(name, ()):
            if kept not in known:
                raise unknown_name(f"{name.removesuffix('s')} in this recipe", kept, known)
        if name in values and isinstance(known, Mapping):
            values[name] = {kept: known[kept] for kept in known if kept in values[name]}
    return {**data, **values}


def checked_training(settings: Mapping[str, Any], called: str) -> dict[str, Any]:
    """The fields of the MSGRPOConfig of one run, which an error calls ``called``.

    Raises:
        UsageError: the config refuses them.
    """
    from agents.msgrpo import ConfigError, MSGRPOConfig

    try:
        MSGRPOConfig.from_mapping(settings)
    except ConfigError as error:
        raise UsageError(f"{called}: {error}") from None
    return dict(settings)


def differences_of(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """``{setting: (value, other's value)}`` of what differs between two experiments' data; nested ones with dots."""
    own, others = dict(flat(data)), dict(flat(other))
    names = list(dict.fromkeys([*own, *others]))
    return {name: (own.get(name), others.get(name)) for name in names if own.get(name) != others.get(name)}


def flat(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as pairs of a name, with dots between its parts, and a value."""
    pairs: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, Mapping):
            pairs += flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", value))
    return pairs
