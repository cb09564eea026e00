"""How a setting of a training run is declared: its TOML section, its limits, and the plug-in point it names."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from agents.msgrpo.credit import METHODS
from agents.msgrpo.draws import DRAWS
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.normalizers import NORMALIZERS
from agents.msgrpo.plugins import Registry
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.tasks import SAMPLERS

POINTS: dict[str, Registry[Any]] = {
    registry.point: registry for registry in (METHODS, DRAWS, FILTERS, SURROGATES, NORMALIZERS, SAMPLERS)
}
"""The plug-in points by name; the settings of their methods stand in ``[point.method]``."""


def _as_tuple(value: Any) -> Any:
    """Let one name stand for a list of one, and take a list as TOML has it."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]

TrackerName = Literal["tensorboard", "wandb", "trackio", "comet_ml", "aim", "mlflow", "clearml", "dvclive", "swanlab"]
"""What accelerate can send metrics to."""

RENAMED = {"horizon": "max_steps"}
"""Names that settings had, and those that they have."""

TrackerNames = Annotated[tuple[TrackerName, ...], BeforeValidator(_as_tuple)]


def setting(section: str, default: Any, **limits: Any) -> Any:
    """Declare a field that stands in ``[section]`` of a file; the text below a field is its documentation."""
    return Field(default, json_schema_extra={"section": section}, **limits)


def method(section: str, default: str, registry: Registry[Any]) -> Any:
    """Declare a field that names a method of a plug-in point; further methods may be registered at any time."""
    return Field(default, json_schema_extra={"section": section, "point": registry.point})


def table(section: str) -> Any:
    """Declare a field that is a table, empty by default."""
    return Field(default_factory=dict, json_schema_extra={"section": section})
