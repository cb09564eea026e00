"""Results as pandas data frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmark.errors import UsageError
from textgames.extras import install_command

if TYPE_CHECKING:
    import pandas

_TYPES = {str: "object", int: "Int64", float: "float64", bool: "boolean"}
"""Pandas' types that know a missing value: an unscored episode has neither return nor success."""

_COUNTS = ("errors", "served_by", "invalid_reasons", "lacks")  # of a score: stay what they are, in one column each


def frame_of_rows(rows: Iterable[Mapping[str, Any]], fields: Mapping[str, type]) -> "pandas.DataFrame":
    """The frame of rows that have these fields, in this order.

    Raises:
        UsageError: pandas isn't installed; says how to install it.
    """
    frames = _pandas()
    columns: dict[str, list[Any]] = {name: [] for name in fields}
    for row in rows:
        for name, values in columns.items():
            values.append(row[name])
    series = {name: frames.Series(values, dtype=_TYPES[fields[name]]) for name, values in columns.items()}
    return frames.DataFrame(series, columns=list(fields))


def frame_of_views(views: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """The frame of rows of :mod:`benchmark.score.document`: an estimate is three columns, such as ``length_low``.

    Raises:
        UsageError: pandas isn't installed.
    """
    return _pandas().DataFrame([dict(flat_view(view)) for view in views])


def flat_view(view: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) of everything in a row: an estimate is three of them, such as ``length_low``."""
    for key, value in view.items():
        name = f"{prefix}{key}"
        if not isinstance(value, Mapping) or key in _COUNTS:
            yield name, value
        elif value.keys() == {"value", "low", "high"}:
            yield from ((name, value["value"]), (f"{name}_low", value["low"]), (f"{name}_high", value["high"]))
        else:
            yield from flat_view(value, f"{name}_")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError(f"data frames need pandas: {install_command('pandas')}") from None
    return pandas
