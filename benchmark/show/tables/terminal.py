"""Results as tables: in the terminal (rich) and as Markdown, from the same rows.

``ScoreView, ComparisonView, ... -> Sheet -> terminal | Markdown``. A sheet holds finished texts; both outputs show the
same figures. What the columns of a leaderboard are stands in ``benchmark.show.tables.columns``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, cast

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from agents.common.console import PlainConsole
from agents.common.terminal import printable
from benchmark.score.differences import TIE
from benchmark.score.document import (
    ComparisonView,
    NeededView,
    OverallComparisonView,
    OverallView,
    RatingView,
    ScoreView,
)
from benchmark.show.tables.beside import found_tables
from benchmark.show.tables.columns import (
    AGENT,
    OVER,
    OVERALL,
    RATINGS,
    SCORES,
    further_columns,
    same_episodes,
    shown_suites,
    suite_columns,
)
from benchmark.show.tables.figures import Column, Figure, Row, estimate_figure, listed, number
from benchmark.show.tables.notes import (
    agent_note,
    further_protocols,
    overall_notes,
    rating_notes,
    score_notes,
    source_notes,
    suite_notes,
)
from benchmark.show.tables.scale import blind_note, scale_ends
from benchmark.show.tables.suites import by_suite
from textgames.scenarios import ABOUT_SUITES

LARGE = 8
"""A board of more scenarios is shown by suite, in one table for each."""


@dataclass(frozen=True)
class Sheet:
    """A table as a terminal shows it: every cell is a text."""

    title: str  # its heading
    columns: tuple[str, ...]  # headings; the ones that start with ``<`` are flush left, the others right
    rows: tuple[tuple[str, ...], ...]  # one text per column
    notes: tuple[str, ...] = ()  # lines below it
    optional: tuple[str, ...] = ()  # columns that a narrow terminal does without
    lead: str = ""  # a sentence above it


def leaderboard_sheets(document: Mapping[str, Any], *, overall_first: bool = False) -> list[Sheet]:
    """All tables of a :class:`benchmark.score.document.ViewDocument`; below the last one, what a shared rank means."""
    scores, ratings = document["scores"], document["ratings"]
    if len({row["scenario"] for row in scores}) > LARGE:
        sheets = suite_sheets(scores, ratings)
    else:
        sheets = score_sheets(scores) + rating_sheets(ratings) + further_sheets(scores)
    sheets += [_sheet(one.title, one.columns, one.rows, one.notes) for one in found_tables(document)]
    overalls = []
    if len(document["overall_scenarios"]) > 1 and any(row["normalized"] for row in document["overall"]):
        overalls.append(overall_sheet(document["overall"], document["overall_scenarios"], scores))
    if suites := shown_suites(document):
        columns = [OVERALL[1], *suite_columns(suites), OVERALL[-1]]
        rows = [row for row in document["overall"] if any(suite["normalized"].get(row["agent"]) for suite in suites)]
        # who lacks what of the overall score stands there, and has nothing to do with these
        rows = [{**row, "lacks": []} for row in rows]
        overalls.insert(0, _sheet("overall by suite", columns, rows, suite_notes(suites)))
    sheets = [*overalls[::-1], *sheets] if overall_first else [*sheets, *overalls]
    if notes := source_notes(document):
        sheets[0] = replace(sheets[0], notes=(*sheets[0].notes, *notes))
    if any(row["tied"] for row in (*scores, *document["overall"])):
        note = (
            "=: can't be told apart from the best agent of this rank: intervals meet, and the paired test finds "
            "nothing at level 0.05 after Bonferroni's correction for the "
            f"{document['comparisons_family']} comparisons that this board allows"
        )
        last = max(place for place, sheet in enumerate(sheets) if "rank" in sheet.columns)
        sheets[last] = replace(sheets[last], notes=(*sheets[last].notes, note))
    return sheets


def suite_sheets(scores: Sequence[ScoreView], ratings: Sequence[RatingView]) -> list[Sheet]:
    """The tables of a large board: those of all scenarios of a suite are one."""
    sheets = []
    for suite, names in by_suite(dict.fromkeys(row["scenario"] for row in scores)).items():
        groups = {name: [row for row in scores if row["scenario"] == name] for name in names}
        told = [
            (name, note)
            for name, rows in groups.items()
            for note in (_scale_note(rows), blind_note(rows), *further_protocols(rows))
        ]
        notes = [f"{name}: {note}" for name, note in told if note]
        about = ABOUT_SUITES.get(suite, "scenarios of no suite")
        sheets.append(_grouped_sheet(f"{suite}: {about}", SCORES, groups, notes))
        measured = {name: [row for row in rows if row["metrics"]] for name, rows in groups.items()}
        sheets.append(_grouped_sheet(f"{suite}: more figures", (SCORES[1], _ALL_METRICS), measured, ()))
        met = {name: [row for row in ratings if row["scenario"] == name] for name in names}
        notes = [f"{name}: {note}" for name, rows in met.items() if rows for note in rating_notes(rows)]
        sheets.append(_grouped_sheet(f"{suite}: head to head", RATINGS, met, notes))
    return [sheet for sheet in sheets if sheet.rows]


def _all_metrics(row: ScoreView) -> Figure:
    named = ((name.replace("_", " "), one["value"]) for name, one in row["metrics"].items())
    return Figure(", ".join(f"{name} {number(value)}" for name, value in named))


_ALL_METRICS: Column[ScoreView] = Column("metrics", "figures", _all_metrics)


def _grouped_sheet(
    title: str, columns: Sequence[Column[Row]], groups: Mapping[str, Sequence[Row]], notes: Sequence[str]
) -> Sheet:
    """The rows of several scenarios in one table."""
    sheet = _sheet(title, columns, [row for rows in groups.values() for row in rows], ())
    return _with_scenarios(sheet, groups, notes)


def _with_scenarios(sheet: Sheet, groups: Mapping[str, Sequence[Any]], notes: Sequence[str]) -> Sheet:
    """The sheet with the scenarios' names in front, each in its first row, and with notes on their agents."""
    placed = [(name if place == 0 else "", name, row) for name in groups for place, row in enumerate(groups[name])]
    lines = tuple((first, *line) for (first, _, _), line in zip(placed, sheet.rows, strict=True))
    told = ((name, row["agent"], agent_note(row)) for _, name, row in placed)
    more = [f"{name}: {agent}: {note}" for name, agent, note in told if note]
    return replace(sheet, columns=("<scenario", *sheet.columns), rows=lines, notes=(*notes, *more))


def further_sheets(rows: Sequence[ScoreView]) -> list[Sheet]:
    """The metrics and the means by seat of the scenarios that have any, at most five columns in one table."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        for _, what, columns in further_columns(group):
            for start in range(0, len(columns), 5):
                chosen = [AGENT, *columns[start : start + 5]]
                sheets.append(_sheet(f"{scenario}, {what}", chosen, group, ()))
    return sheets


def score_sheets(rows: Sequence[ScoreView]) -> list[Sheet]:
    """A table of scores for each scenario."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        count = same_episodes(group)
        counted = scenario if count is None else f"{scenario}, {count} episode{'' if count == 1 else 's'}"
        scale = _scale_note(group)
        ends = [f"normalised: {scale}"] if scale else []
        notes = [*ends, *score_notes(group), *further_protocols(group)]
        sheets.append(_sheet(f"{counted}; {OVER}", SCORES, group, notes))
    return sheets


def _scale_note(rows: Sequence[ScoreView]) -> str:
    """The ends of a scenario's normalised scores, where both are known."""
    ends = [f"{name} {number(value)}, {source}" for name, value, source in scale_ends(rows)]
    if not any(row["normalized"] for row in rows):
        return ""
    return "0 = {}; 1 = {}".format(*ends) if len(ends) == 2 else ""


def overall_sheet(rows: Sequence[OverallView], scenarios: Sequence[str], scores: Sequence[ScoreView] = ()) -> Sheet:
    """The overall scores; ``scores`` tell what 0 and 1 are in each scenario."""
    notes = [
        f"mean over the games of {listed(scenarios)}, whose scores count as 0 below 0; a game's scenarios share "
        "its weight",
        *overall_notes(rows, scores, scenarios),
    ]
    return _sheet("overall", OVERALL, rows, notes)


def rating_sheets(rows: Sequence[RatingView]) -> list[Sheet]:
    """A table of head-to-head ratings for each scenario."""
    sheets = []
    for scenario in dict.fromkeys(row["scenario"] for row in rows):
        group = [row for row in rows if row["scenario"] == scenario]
        sheets.append(_sheet(f"{scenario}, head to head", RATINGS, group, rating_notes(group)))
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
    titles = tuple(f"<{column.title}" if column.key in _FOLDED else column.title for column in columns)
    optional = tuple(column.title for column in columns if column.optional or column.wide_only)
    return Sheet(title, titles, tuple(lines), tuple(note for note in (*notes, *more) if note), optional)


def _figure_text(column: Column[Row], figure: Figure) -> str:
    if column.optional or not figure.interval:
        return figure.text or "-"
    return f"{figure.text} {figure.interval}"


_FOLDED = ("agent", "metrics", "means")  # the columns of long texts, which take several lines where they have to

COMPARISON_NOTES = (
    "Difference: mean of (return of A - return of B) over the seeds that both played, with its 95% interval.",
    "The returns are luck-free where both have such (textbench leaderboard shows them beside the plain ones).",
    "p: paired sign-flip test, two-sided; Holm: corrected over all rows of all tables here, and over all scenarios.",
    "If nothing differs, p takes each pair to be as likely to fall either way. A rare disaster that no start has shown "
    "is in no p and in no interval: play more starts if one is possible.",
    "Episodes needed: to show a difference of this size with power 0.8 at level 0.05 after the same correction; in "
    "brackets their 95% interval.",
)


def comparison_sheets(rows: Sequence[ComparisonView], overall: Sequence[OverallComparisonView] = ()) -> list[Sheet]:
    """One sheet per pair of agents, below its verdict; what the figures mean stands below the last."""
    columns = ("<scenario", "pairs", "difference", "p", "p (Holm)", "episodes needed")
    verdicts = {(row["a"], row["b"]): verdict_sentence(row) for row in overall}
    sheets = []
    for a, b in dict.fromkeys((row["a"], row["b"]) for row in rows):
        lines = tuple(
            (
                row["scenario"],
                str(row["pairs"]),
                " ".join(estimate_figure(row["difference"], "+.3f")[::2]).strip(),
                p_text(row["p_value"]),
                p_text(row["p_holm"]),
                needed_text(row["episodes_needed"], row["episodes_needed_low"], row["episodes_needed_high"]),
            )
            for row in rows
            if (row["a"], row["b"]) == (a, b)
        )
        sheets.append(Sheet(f"A = {a}, B = {b}", columns, lines, lead=verdicts.get((a, b), "")))
    return [*sheets[:-1], replace(sheets[-1], notes=COMPARISON_NOTES)] if sheets else []


def needed_text(value: int | None, low: int | None, high: int | None) -> str:
    """A number of episodes with its interval: ``120 [66, 217]``, or ``120 [66, ...]`` where it may be any number."""
    return "-" if value is None else f"{value:,} [{low:,}, {'...' if high is None else f'{high:,}'}]"


def verdict_sentence(row: OverallComparisonView) -> str:
    """Say who is better of two agents, by how much, with which interval and p, and which scenarios decide it."""
    several = len(row["scenarios"]) > 1
    over = f"over {len(row['scenarios'])} scenarios" if several else f"in {row['scenarios'][0]}"
    what = "overall score" if row["unit"] == "score" else "mean return"
    value, low, high = row["difference"], row["low"], row["high"]
    ahead, other = (row["a"], row["b"]) if value >= 0 else (row["b"], row["a"])
    if value < 0:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    figure = estimate_figure({"value": value, "low": low, "high": high})
    by = f"{figure.text} {figure.interval}".strip()
    corrected = f"p {p_text(row['corrected'])} after correction for {row['comparisons']} comparisons"
    by += f", {corrected}" if row["comparisons"] > 1 else f", p {p_text(row['p'])}"
    if row["verdict"] == TIE:
        more = _more_starts(row.get("starts_needed"), row["starts"], " of each scenario" if several else "")
        return f"{row['a']} and {row['b']} can't be told apart {over}: {what} of {ahead} higher by {by}; {more}."
    decided = f"; decided by {listed(row['decided_by']) or 'no scenario alone'}" if several else ""
    against = f"; {other} is better in {listed(row['against'])}" if row["against"] else ""
    return f"{ahead} is better than {other} {over}: {what} higher by {by}{decided}{against}."


def _more_starts(needed: NeededView | None, starts: int, each: str) -> str:
    if needed is None:
        return "no number of starts would tell"
    more, least, high = needed["value"] - starts, needed["low"] - starts, needed["high"]
    between = f"at least {least:,}, and perhaps none" if high is None else f"{least:,} to {high - starts:,}"
    return f"about {more:,} more start{'' if more == 1 else 's'}{each} would tell ({between})"


def p_text(value: float) -> str:
    """A p-value with the digits that mean something."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


class _Stdout(PlainConsole):
    """Leaves a reader that has gone, as ``head`` has, to :func:`benchmark.cli.main`: rich would exit with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout_console() -> Console:
    """The console for results: as wide as the terminal; wide enough for every table in a file or a pipe."""
    console = _Stdout(force_jupyter=False)  # in a notebook, too, what is printed is text
    return console if console.is_terminal else _Stdout(force_jupyter=False, width=180)


def print_sheets(sheets: Sequence[Sheet], console: Console) -> None:
    """Draw sheets in the terminal. Names and reasons are text, never markup."""
    if not console.is_terminal:  # files and pipes get no trailing blanks
        with console.capture() as captured:
            _draw_sheets(sheets, console)
        console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
        return
    _draw_sheets(sheets, console)


def print_lines(lines: Sequence[str]) -> None:
    """Print finished lines to standard output as they are."""
    print(printable("\n".join(lines)))  # from a program, too, where standard output isn't plain


def to_text(sheets: Sequence[Sheet]) -> str:
    """The tables as plain text, wide enough for every one of them."""
    console = PlainConsole(file=StringIO(), color_system=None, force_terminal=False, force_jupyter=False, width=180)
    print_sheets(sheets, console)
    return cast(StringIO, console.file).getvalue().rstrip("\n")


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
            table.add_row(*(Text(printable(cell)) for cell in row))  # before they are measured
        if sheet.lead:
            console.print(Text(sheet.lead))
        console.print(table)
        for note in sheet.notes:
            console.print(Text(note, style="dim"))
        console.print()


def to_markdown(sheets: Sequence[Sheet]) -> str:
    """The tables of the terminal as GitHub Markdown."""
    blocks = []
    for sheet in sheets:
        lines = [_escape(sheet.lead), ""] if sheet.lead else []
        lines += [f"### {_escape(sheet.title)}", ""]
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
