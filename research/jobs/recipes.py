"""Recipes of experiments: TOML files that are read into frozen records, and how two of them differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.common import problem_of, read_toml
from benchmark import UsageError, unknown_name

Table = Mapping[str, Any]
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Field(strict=True, ge=1)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, gt=0, le=1)]

TUNING_SEED = 1000
"""The seed of runs that tune, which no other run has."""


class ExperimentSettings(BaseModel):
    """The settings of an experiment: everything that decides its outcome, as a frozen record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    CALLED: ClassVar[str]  # what an error calls the experiment
    CHOSEN: ClassVar[tuple[str, ...]] = ("games",)  # settings of which a change names what is kept

    @classmethod
    def read(cls, source: str | Path, changes: Mapping[str, Any] | None = None) -> Self:
        """Read a recipe that ships, by its name, or a TOML file, and apply changes as :func:`with_changes` does.

        Raises:
            UsageError: no such recipe, not TOML, an unknown setting or a value that can't be, or a name that is to be
                kept and that the recipe doesn't have.
        """
        return cls.checked(with_changes(cls.completed(read_recipe(source)), changes, cls.CHOSEN), source)

    @classmethod
    def completed(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return a recipe's content with what follows from it."""
        return data

    @classmethod
    def checked(cls, data: Mapping[str, Any], source: str | Path) -> Self:
        """Return a recipe's content as the record of its experiment; raise a UsageError about what can't be."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
                kind, name = f"setting of {cls.CALLED} (in {source})", str(first["loc"][0])
                raise unknown_name(kind, name, cls.model_fields) from None
            raise UsageError(f"{source}: {problem_of(error)}") from None

    def as_data(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def differences(self, other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Return :func:`differences_of` the data of another experiment."""
        return differences_of(self.as_data(), other)

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """Return the differences that only add work."""
        return []


class SeededSettings(ExperimentSettings):
    """The settings of an experiment whose runs are repeated with so many seeds."""

    seeds: PositiveCount

    def additions(self, other: Mapping[str, Any]) -> list[str]:
        """Return the differences that only add work: more seeds."""
        before = other.get("seeds")
        return ["seeds"] if isinstance(before, int) and self.seeds > before else []


def shipped_recipes() -> dict[str, Path]:
    """Return ``{name: file}`` of the recipes that a name is enough for: those in the experiments' folders
    ``recipes``."""
    return {file.stem: file for file in sorted(Path(__file__).parents[1].rglob("recipes/*.toml"))}


def read_recipe(source: str | Path) -> dict[str, Any]:
    """Return the content of a shipped recipe, by its name, or of a TOML file; raise a UsageError if it is neither."""
    shipped = shipped_recipes()
    file = shipped.get(str(source), Path(source))
    if not file.exists():
        raise unknown_name("recipe or TOML file", str(source), shipped)
    return read_toml(file, f"the recipe {str(source)!r}", UsageError)


def with_changes(data: Mapping[str, Any], changes: Mapping[str, Any] | None, chosen: Sequence[str]) -> dict[str, Any]:
    """Return a recipe's content with the command line's changes, if ``None`` changes nothing.

    ``chosen`` are the settings, tables or lists, of which a change names what is kept. If the recipe
    doesn't have it, a UsageError is raised. Tables keep the recipe's order, as the first arm is the one that others are
    beside.
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
    """Return the fields of one run's MSGRPOConfig; raise a UsageError about ``called`` if it refuses them."""
    from agents.msgrpo import ConfigError, MSGRPOConfig

    try:
        MSGRPOConfig.from_mapping(settings)
    except ConfigError as error:
        raise UsageError(f"{called}: {error}") from None
    return dict(settings)


def differences_of(data: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return ``{setting: (value, other's value)}`` of what differs between two experiments' data; nested ones with
    dots."""
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
