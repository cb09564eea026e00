"""One table: columns that know what they show of a row, the rows, and notes. Terminal, Markdown and page draw it.

``ScoreView, OverallView, RatingView, ... -> Column -> Figure``. The tables of a board are in ``benchmark.show.board``,
the outputs in ``benchmark.show.draw`` and ``benchmark.show.page``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from benchmark.score.document import EstimateView

if TYPE_CHECKING:
    from benchmark.score.document import OverallView, ScoreView
    from benchmark.score.references import References
    from benchmark.score.results import ResultColumns

Row = TypeVar("Row", bound=Mapping[str, Any])
Rows = Sequence[Mapping[str, Any]]
First = Literal["ascending", "descending"]


class Bar(NamedTuple):
    """An interval on a scale of 0 to 100: its ends, its point, and marks for blind play and the reference."""

    low: float
    value: float
    high: float
    marks: tuple[float, ...] = ()


class Figure(NamedTuple):
    """The content of one cell of a table."""

    text: str = ""  # the value as it is shown; empty if there is none
    sort: float | str | None = None  # the value to sort by; ``None`` goes last
    interval: str = ""  # ``"[0.620, 0.860]"``, or empty
    note: str = ""  # what a reader must know about this value
    href: str = ""  # the address within the page that it leads to
    bar: Bar | None = None  # of its interval, as a page draws it


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a table."""

    key: str  # its name in addresses and scripts; that of the estimate in the row, if it shows one
    title: str  # its heading
    figure: Callable[[Row], Figure]  # what it shows of a row
    first: First = "descending"  # the order that puts the best on top
    explain: str = ""  # what the title leaves open
    bar: bool = False  # whether a page draws the interval of the estimate ``row[key]``
    optional: bool = False  # whether the terminal shows the value alone, and a narrow one nothing
    wide_only: bool = False  # whether a narrow terminal leaves it out
    needed: Callable[[Sequence[Row]], bool] = lambda rows: True  # whether these rows need it
    is_name: bool = False  # whether its title is a name, which a page writes as it is
    left: bool = False  # whether a terminal sets it flush left and folds long texts
    none: str = "-"  # what a terminal shows if there is no text


class Scored(NamedTuple):
    """The results that the rows of a table beside the scores can be found in."""

    results: "ResultColumns"
    references: "References"
    agents: Sequence[str]  # best first
    scores: "Sequence[ScoreView]"
    overall: "Sequence[OverallView]"
    every: "ResultColumns"  # with all samples of an agent, of which ``results`` has the first


class Elsewhere(str):
    """A note below a table that the page has in another place."""


@dataclass(frozen=True)
class Table:
    """One table, whatever draws it."""

    key: str  # its name in a page; of a table beside the scores: that of its rows in a document
    title: str
    columns: Sequence[Column[Any]]
    notes: Sequence[str] = ()  # sentences below it
    # of a table beside the scores: returns its rows, in a form that can be JSON
    find: Callable[[Scored], Sequence[Any]] = lambda scored: ()
    brief: str = ""  # a sentence for the few lines that a run ends in, which have the next columns
    figures: Callable[[Sequence[Any]], Mapping[str, Figure]] = lambda rows: {}  # {title: figure} of one agent's rows
    rows: Sequence[Any] = ()
    lead: str = ""  # a sentence above it
    caption: str = ""  # what a page calls it; empty for its title
    details: Sequence[str] = ()  # further notes, which a page shows on demand
    sorted_by: str = ""  # the key of the column that a page's rows are in the order of
    marks: Sequence[float] = ()  # values that a page marks on its bars
    last: Sequence[str] = ()  # notes below those of single figures, which a page has elsewhere

    @cached_property
    def shown(self) -> list[Column[Any]]:
        return [column for column in self.columns if column.needed(self.rows)]

    @cached_property
    def cells(self) -> list[list[Figure]]:
        """The figures of every row, one for each of the columns that are shown."""
        return [[column.figure(row) for column in self.shown] for row in self.rows]

    @property
    def titles(self) -> list[str]:
        return [column.title for column in self.shown]

    @property
    def texts(self) -> list[list[str]]:
        def text(column: Column[Any], figure: Figure) -> str:
            alone = column.optional or not figure.interval
            return figure.text or column.none if alone else f"{figure.text} {figure.interval}"

        return [list(map(text, self.shown, row)) for row in self.cells]

    @property
    def lines(self) -> list[str]:
        """All notes below it, with those of single figures."""
        told = (
            f"{row['agent']}: {'' if column.key == 'agent' else column.title + ': '}{figure.note}"
            for row, figures in zip(self.rows, self.cells, strict=True)
            for column, figure in zip(self.shown, figures, strict=True)
            if figure.note
        )
        return [note for note in (*self.notes, *self.details, *told, *self.last) if note]


def number(value: float, form: str = ".3f") -> str:
    """Return a number's text; what rounds to zero has no minus sign."""
    text = format(value, form)
    return format(0.0, form) if float(text.rstrip("%")) == 0 else text


def figure_of(value: float | None, form: str = ".3f") -> Figure:
    """Return the figure of a number without an interval, an empty one if it isn't known."""
    return Figure() if value is None else Figure(number(value, form), value)


def estimate_figure(estimate: EstimateView | None, form: str = ".3f") -> Figure:
    """Return ``0.740`` and ``[0.620, 0.860]``; a share in percent has its sign once: ``74%`` and ``[62, 86]``."""
    if estimate is None:
        return Figure()
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    interval = "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]".replace("%", "")
    return Figure(number(value, form), value, interval)


def agent_figure(row: Mapping[str, Any]) -> Figure:
    """Return the agent's name, which sorts without regard to case."""
    return Figure(row["agent"], row["agent"].casefold())


def estimate(key: str, title: str, form: str = ".3f", first: First = "descending", **about: Any) -> Column[Any]:
    """Make a column of the estimates ``row[key]``."""
    return Column(key, title, lambda row: estimate_figure(row[key], form), first, **about)


def value(key: str, title: str = "", form: str = "", **about: Any) -> Column[Any]:
    """Make a column of the numbers or names ``row[key]``; ``None`` is none."""

    def figure(row: Mapping[str, Any]) -> Figure:
        return Figure() if row[key] is None else Figure(format(row[key], form), row[key])

    return Column(key, title or key, figure, **about)


def text_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> Table:
    """Make a table of finished texts, one a column; headings that start with ``<`` are of columns flush left."""

    def column(place: int, heading: str) -> Column[Any]:
        is_left = heading.startswith("<")
        return Column(heading, heading.removeprefix("<"), lambda row: Figure(row[place]), left=is_left, none="")

    return Table("", title, [column(*one) for one in enumerate(headings)], notes, rows=rows)
