"""What tables are made of: a column knows its title, its figures and when it is needed.

``ScoreView, OverallView, RatingView, ... -> Column -> Figure``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from benchmark.score.document import EstimateView, OverallView, ScoreView

Row = TypeVar("Row", bound=Mapping[str, Any])


MOST_NAMES = 12  # of scenarios that a note lists


class Figure(NamedTuple):
    """The content of one cell of a table."""

    text: str = ""  # the value as it is shown; empty where there is none
    sort: float | str | None = None  # the value to sort by; ``None`` goes last
    interval: str = ""  # ``"[0.620, 0.860]"``, or empty
    note: str = ""  # what a reader must know about this value


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a table."""

    key: str  # its name in addresses and scripts; that of the estimate in the row, if it shows one
    title: str  # its heading
    figure: Callable[[Row], Figure]  # what it shows of a row
    first: Literal["ascending", "descending"] = "descending"  # the order that puts the best on top
    explain: str = ""  # what the title leaves open
    bar: bool = False  # whether a page draws the interval of the estimate ``row[key]``
    optional: bool = False  # whether the terminal shows the value alone, and a narrow one nothing
    wide_only: bool = False  # whether a narrow terminal leaves it out
    needed: Callable[[Sequence[Row]], bool] = lambda rows: True  # whether these rows need it
    term: str = ""  # what a page's list of terms calls it; empty where it isn't listed
    meaning: str = ""  # what it counts, where there is room for it; {aim} and {protocol} are the scenario's


def number(value: float, form: str = ".3f") -> str:
    """A number's text; what rounds to zero has no minus sign."""
    text = format(value, form)
    return format(0.0, form) if float(text.rstrip("%")) == 0 else text


def estimate_figure(estimate: EstimateView | None, form: str = ".3f") -> Figure:
    """``0.740`` and ``[0.620, 0.860]``; a share in percent has its sign once: ``74%`` and ``[62, 86]``."""
    if estimate is None:
        return Figure()
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    interval = "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]".replace("%", "")
    return Figure(number(value, form), value, interval)


def rank_figure(row: ScoreView | OverallView) -> Figure:
    """A rank as tables show it: ``4``, or ``4=`` where it is shared."""
    return Figure("" if row["rank"] is None else f"{row['rank']}{'=' if row['tied'] else ''}", row["rank"])


def agent_figure(row: Mapping[str, Any]) -> Figure:
    """The agent's name, which sorts without regard to case."""
    return Figure(row["agent"], row["agent"].casefold())


def listed(names: Sequence[str]) -> str:
    """The names, or the first ones and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names if more <= 0 else [*names[:MOST_NAMES], f"{more} more"])
