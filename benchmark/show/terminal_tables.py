"""Results as tables: in the terminal (rich) and as Markdown, from the same rows.

``ScoreView, ComparisonView, ... -> Sheet -> terminal | Markdown``. A sheet holds finished texts; both outputs show the
same figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmark.score.document import ComparisonView, Estimate, OverallView, RatingView, ScoreView


@dataclass(frozen=True)
class Sheet:
    """One table of texts.

    Attributes:
        title: its heading.
        columns: headings; the ones that start with ``<`` are flush left, the others right.
        rows: one text per column.
        notes: lines below it.
        optional: columns that a narrow terminal does without.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


SCORE_COLUMNS: tuple[str, ...] = (  # the last two where somebody used tokens and has a price
    "rank",
    "<agent",
    "episodes",
    "mean return",
    "normalised",
    "success",
    "invalid",
    "length",
    "tokens",
    "cost USD",
)


def score_sheets(rows: Sequence[ScoreView]) -> list[Sheet]:
    """One sheet per scenario."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        columns = SCORE_COLUMNS
        if not any(row["tokens"] and row["tokens"]["value"] for row in group):
            columns = columns[:-2]  # players without a model
        elif not any(row["cost"] for row in group):
            columns = columns[:-1]  # nobody's price is known
        lines = tuple(_score_line(row)[: len(columns)] for row in group)
        sheets.append(Sheet(scenario, columns, lines, tuple(_score_notes(group)), ("length", "tokens", "cost USD")))
    return sheets


def overall_sheet(rows: Sequence[OverallView]) -> Sheet:
    """The mean normalised scores."""
    lines = tuple(
        (_number(row["rank"]), row["agent"], str(row["scenarios"]), interval(row["normalized"])) for row in rows
    )
    return Sheet("overall", ("rank", "<agent", "scenarios ranked in", "mean normalised score"), lines)


def rating_sheets(rows: Sequence[RatingView]) -> list[Sheet]:
    """Head-to-head ratings, one sheet per scenario."""
    columns = ("<agent", "rating (Elo)", "games", "wins", "draws", "losses")
    return [
        Sheet(
            f"{scenario}, head to head",
            columns,
            tuple(
                (
                    row["agent"],
                    interval(row["rating"], "+.0f"),
                    *(str(count) for count in (row["games"], row["wins"], row["draws"], row["losses"])),
                )
                for row in rows
                if row["scenario"] == scenario
            ),
        )
        for scenario in dict.fromkeys(row["scenario"] for row in rows)
    ]


COMPARISON_NOTES = (
    "Difference: mean of (return of A - return of B) over the seeds that both played, with its 95% bootstrap interval.",
    "p: paired permutation test, two-sided; Holm: corrected over the scenarios of the pair. "
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
                interval(row["difference"], "+.3f"),
                p_text(row["p_value"]),
                p_text(row["p_holm"]),
                _number(row["episodes_needed"]),
            )
            for row in rows
            if (row["a"], row["b"]) == (a, b)
        )
        sheets.append(Sheet(f"A = {a}, B = {b}", columns, lines))
    return [*sheets[:-1], replace(sheets[-1], notes=COMPARISON_NOTES)] if sheets else []


def interval(estimate: Estimate | None, form: str = ".3f") -> str:
    """``0.740 [0.620, 0.860]``; empty for none."""
    if estimate is None:
        return ""
    value = _rounded(estimate["value"], form)
    if estimate["low"] is None or estimate["high"] is None:
        return value
    return f"{value} [{_rounded(estimate['low'], form)}, {_rounded(estimate['high'], form)}]"


def _rounded(value: float, form: str) -> str:
    """A number's text; what rounds to zero has no minus sign."""
    text = format(value, form)
    return format(0.0, form) if float(text) == 0 else text


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


NARROW = 110
"""Terminals with fewer columns get intervals below their values, and fewer of them."""


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
            table.add_column(Text(column.removeprefix("<")), justify="left" if left else "right", overflow="fold")
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


def _score_line(row: ScoreView) -> tuple[str, ...]:
    counted = str(row["episodes"]) if row["episodes"] == row["planned"] else f"{row['episodes']} of {row['planned']}"
    cost = "?" if row["cost"] is None else f"{row['cost']:.4f}"
    return (
        _number(row["rank"]),
        row["agent"],
        counted,
        interval(row["mean_return"]),
        interval(row["normalized"], ".2f"),
        _share(row["success_rate"]),
        _share(row["invalid_rate"]),
        f"{row['length']['value']:.1f}" if row["length"] else "",
        f"{row['tokens']['value']:.0f}" if row["tokens"] else "",
        cost,
    )


def _score_notes(group: Sequence[ScoreView]) -> list[str]:
    """What the reader must know: references, unscored episodes with their reasons, invalid responses by reason."""
    notes = []
    reference = next((row["reference"] for row in group if row["reference"]["optimal"] is not None), None)
    if reference is not None and reference["random"] is not None:
        notes.append(
            f"normalised: 0 = random {reference['random']:.3f}, {reference['random_source']}; "
            f"1 = optimal {reference['optimal']:.3f}, {reference['optimal_source']}"
        )
    for row in group:
        if row["unscored"]:
            reasons = "; ".join(f"{count} x {reason}" for reason, count in row["errors"].items())
            notes.append(f"{row['agent']}: not ranked, {row['unscored']} unscored episodes: {reasons}")
        elif row["episodes"] < row["planned"]:
            notes.append(f"{row['agent']}: not ranked, {row['planned'] - row['episodes']} episodes weren't played")
        if row["invalid_reasons"]:
            reasons = ", ".join(f"{reason} {count}" for reason, count in row["invalid_reasons"].items())
            notes.append(f"{row['agent']}: invalid responses: {reasons}")
    return notes


def _share(estimate: Estimate | None) -> str:
    """A share in percent, with its interval."""
    if estimate is None:
        return ""
    value = f"{100 * estimate['value']:.0f}%"
    if estimate["low"] is None or estimate["high"] is None:
        return value
    return f"{value} [{100 * estimate['low']:.0f}, {100 * estimate['high']:.0f}]"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
