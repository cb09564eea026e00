"""Results as tables: in the terminal (rich) and as Markdown, from the same rows.

``ScoreView, ComparisonView, ... -> Sheet -> terminal | Markdown``. A sheet holds finished texts; both outputs show the
same figures. What the columns of a leaderboard are stands in ``benchmark.show.columns``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from benchmark.score.document import ComparisonView, OverallView, RatingView, ScoreView
from benchmark.show import columns as common
from benchmark.show.columns import Column, Figure, Row


@dataclass(frozen=True)
class Sheet:
    """One table of texts."""

    title: str  # its heading
    columns: tuple[str, ...]  # headings; the ones that start with ``<`` are flush left, the others right
    rows: tuple[tuple[str, ...], ...]  # one text per column
    notes: tuple[str, ...] = ()  # lines below it
    optional: tuple[str, ...] = ()  # columns that a narrow terminal does without


def leaderboard_sheets(document: Mapping[str, Any], *, overall_first: bool = False) -> list[Sheet]:
    """All tables of a :class:`benchmark.score.document.ViewDocument`; below the last one, what a shared rank means."""
    sheets = score_sheets(document["scores"]) + rating_sheets(document["ratings"])
    if len(document["overall_scenarios"]) > 1 and any(row["normalized"] for row in document["overall"]):
        overall = overall_sheet(document["overall"], document["overall_scenarios"])
        sheets = [overall, *sheets] if overall_first else [*sheets, overall]
    if any(row["tied"] for row in (*document["scores"], *document["overall"])):
        note = (
            "=: can't be told apart from the best agent of this rank, by the paired test at level 0.05 after "
            f"Bonferroni's correction for the {document['comparisons_family']} comparisons that this board allows"
        )
        sheets[-1] = replace(sheets[-1], notes=(*sheets[-1].notes, note))
    return sheets


def score_sheets(rows: Sequence[ScoreView]) -> list[Sheet]:
    """One sheet per scenario."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        count = common.same_episodes(group)
        title = scenario if count is None else f"{scenario}, {count} episode{'' if count == 1 else 's'}"
        normalised = [row["normalized"] for row in group]
        ends = [f"{name} {common.number(value)}, {source}" for name, value, source in common.scale_ends(group)]
        scale = "normalised: 0 = {}; 1 = {}".format(*ends) if len(ends) == 2 else ""
        notes = [scale, common.above_one(normalised, group[0]["reference"]["optimal_source"])]
        sheets.append(_sheet(title, common.SCORES, group, notes))
    return sheets


def overall_sheet(rows: Sequence[OverallView], scenarios: Sequence[str]) -> Sheet:
    """The mean normalised scores."""
    notes = [f"mean over {', '.join(scenarios)}", common.above_one([row["normalized"] for row in rows])]
    return _sheet("overall", common.OVERALL, rows, notes)


def rating_sheets(rows: Sequence[RatingView]) -> list[Sheet]:
    """Head-to-head ratings, one sheet per scenario."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        sheets.append(_sheet(f"{scenario}, head to head", common.RATINGS, group, common.rating_notes(group)))
    return sheets


def _sheet(title: str, columns: Sequence[Column[Row]], rows: Sequence[Row], notes: Sequence[str]) -> Sheet:
    """The needed columns of these rows as texts, with the figures' notes below."""
    columns = [column for column in columns if column.needed(rows)]
    lines: list[tuple[str, ...]] = []
    more: list[str] = []
    for row in rows:
        figures = [column.figure(row) for column in columns]
        lines.append(tuple(_figure_text(*pair) for pair in zip(columns, figures, strict=True)))
        for column, figure in zip(columns, figures, strict=True):
            if figure.note:
                more.append(f"{row['agent']}: {'' if column.key == 'agent' else column.title + ': '}{figure.note}")
    titles = tuple(f"<{column.title}" if column.key == "agent" else column.title for column in columns)
    optional = tuple(column.title for column in columns if column.optional)
    return Sheet(title, titles, tuple(lines), tuple(note for note in (*notes, *more) if note), optional)


def _figure_text(column: Column[Row], figure: Figure) -> str:
    if column.optional or not figure.interval:
        return figure.text or "-"
    return f"{figure.text} {figure.interval}"


COMPARISON_NOTES = (
    "Difference: mean of (return of A - return of B) over the seeds that both played, with its 95% interval.",
    "p: paired sign-flip test, two-sided; Holm: corrected over all rows of all tables here.",
    "Episodes needed: to show a difference of this size with power 0.8 at level 0.05.",
)


def comparison_sheets(rows: Sequence[ComparisonView]) -> list[Sheet]:
    """One sheet per pair of agents; what the figures mean stands below the last."""
    columns = ("<scenario", "pairs", "difference", "p", "p (Holm)", "episodes needed")
    sheets = []
    for a, b in dict.fromkeys((row["a"], row["b"]) for row in rows):
        lines = tuple(
            (
                row["scenario"],
                str(row["pairs"]),
                " ".join(common.estimate_figure(row["difference"], "+.3f")[::2]).strip(),
                p_text(row["p_value"]),
                p_text(row["p_holm"]),
                str(row["episodes_needed"] or "-"),
            )
            for row in rows
            if (row["a"], row["b"]) == (a, b)
        )
        sheets.append(Sheet(f"A = {a}, B = {b}", columns, lines))
    return [*sheets[:-1], replace(sheets[-1], notes=COMPARISON_NOTES)] if sheets else []


def p_text(value: float) -> str:
    """A p-value with the digits that mean something."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def printable(text: str) -> str:
    """Text without control characters: a response or a name can't move the cursor or recolour the terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape", "replace").decode() for c in text
    )


def stdout_console() -> Console:
    """Where results are printed: as wide as the terminal; wide enough for every table in a file or a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    """Draw sheets in the terminal. Names and reasons are text, never markup."""
    if not console.is_terminal:  # files and pipes get no trailing blanks
        with console.capture() as captured:
            _draw_sheets(sheets, console)
        console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
        return
    _draw_sheets(sheets, console)


NARROW = 110  # terminals with fewer columns get intervals below their values, and fewer of them


def narrowed(sheet: Sheet) -> Sheet:
    """The sheet without its optional columns, every interval on a line of its own."""
    kept = [place for place, column in enumerate(sheet.columns) if column not in sheet.optional]
    rows = tuple(tuple(row[place].replace(" [", "\n[") for place in kept) for row in sheet.rows)
    return replace(sheet, columns=tuple(sheet.columns[place] for place in kept), rows=rows)


def _draw_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    for sheet in sheets if console.width >= NARROW else map(narrowed, sheets):
        table = Table(title=Text(sheet.title, style="bold"), title_justify="left", box=None, pad_edge=False)
        for column in sheet.columns:
            left = column.startswith("<")
            justify: JustifyMethod = "left" if left else "right"
            # a narrow terminal folds names, never figures
            table.add_column(Text(column.removeprefix("<")), justify=justify, overflow="fold", no_wrap=not left)
        for row in sheet.rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print(table)
        for note in sheet.notes:
            console.print(Text(printable(note), style="dim"))
        console.print()


def to_markdown(sheets: Sequence[Sheet]) -> str:
    """The same tables as GitHub Markdown."""
    blocks = []
    for sheet in sheets:
        lines = [f"### {_escape(sheet.title)}", ""]
        lines.append(_markdown_row([column.removeprefix("<") for column in sheet.columns]))
        lines.append(_markdown_row([":--" if column.startswith("<") else "--:" for column in sheet.columns]))
        lines += [_markdown_row([_escape(cell) for cell in row]) for row in sheet.rows]
        if sheet.notes:
            lines += ["", *(_escape(note) + "  " for note in sheet.notes)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    """Names may hold anything; in a table they must stay in their cell and be text."""
    for character in "\\`*<|":
        text = text.replace(character, "\\" + character)
    return printable(text).replace("\n", " ")
