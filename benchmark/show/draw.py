"""Tables in the terminal (by rich), as Markdown and in notebooks, from the same rows. The page is another package."""

import re
from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import cast

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from agents.common.console import PlainConsole
from agents.common.terminal import printable
from benchmark.show.table import Table

NARROW = 110  # terminals with fewer columns get intervals below their values, and fewer of them
_LEFT, _RIGHT = "text-align: left", "text-align: right; font-variant-numeric: tabular-nums"
_TITLE = f"{_LEFT}; font-weight: bold; caption-side: top"


class _Stdout(PlainConsole):
    """Leaves a reader that has gone, as ``head`` has, to :func:`benchmark.cli.main`: rich would exit with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout_console() -> Console:
    """Return the console for results: as wide as the terminal; wide enough for every table in a file or a pipe."""
    console = _Stdout(force_jupyter=False)  # in a notebook, too, what is printed is text
    return console if console.is_terminal else _Stdout(force_jupyter=False, width=180)


def print_tables(tables: Sequence[Table], console: Console | None = None) -> None:
    """Draw tables in the terminal. Names and reasons are text, never markup."""
    console = console or stdout_console()
    if console.is_terminal:
        _draw(tables, console)
        return
    with console.capture() as captured:  # files and pipes get no trailing blanks
        _draw(tables, console)
    console.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def _draw(tables: Sequence[Table], console: Console) -> None:
    is_narrow = console.width < NARROW
    for table in tables:
        drawn = RichTable(title=Text(table.title, style="bold"), title_justify="left", box=None, pad_edge=False)
        kept = [place for place, one in enumerate(table.shown) if not (is_narrow and (one.optional or one.wide_only))]
        for column in (table.shown[place] for place in kept):
            # a narrow terminal folds names, never figures
            justify, fold = ("left", True) if column.left else ("right", False)
            drawn.add_column(Text(column.title), justify=justify, overflow="fold", no_wrap=not fold)  # type: ignore[arg-type]
        for row in table.texts:
            texts = [row[place].replace(" [", "\n[") if is_narrow else row[place] for place in kept]
            drawn.add_row(*(Text(printable(cell)) for cell in texts))  # before they are measured
        if table.lead:
            console.print(Text(table.lead))
        console.print(drawn)
        for note in table.lines:
            console.print(Text(note, style="dim"))
        console.print()


def to_text(tables: Sequence[Table]) -> str:
    """Return the tables as plain text, wide enough for every one of them."""
    console = PlainConsole(file=StringIO(), color_system=None, force_terminal=False, force_jupyter=False, width=180)
    print_tables(tables, console)
    return cast(StringIO, console.file).getvalue().rstrip("\n")


def to_markdown(tables: Sequence[Table]) -> str:
    """Return the tables as GitHub Markdown."""
    blocks = []
    for table in tables:
        lines = [escaped(table.lead), ""] if table.lead else []
        lines += [f"### {escaped(table.title)}", ""]
        rows = [list(map(escaped, table.titles)), [":--" if column.left else "--:" for column in table.shown]]
        rows += [[escaped(cell) for cell in row] for row in table.texts]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        if table.lines:
            lines += ["", *(escaped(note) + "  " for note in table.lines)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Escape what Markdown reads: names may hold anything; in a table they must stay in their cell and be text."""
    for character in "\\`*<|":
        text = text.replace(character, "\\" + character)
    text = re.sub(r"\](?=[(\[:])", r"\\]", text)  # of a link or an image; intervals stay
    return printable(text).replace("\n", " ")


def to_html(tables: Sequence[Table]) -> str:
    """Return the tables one below the other as HTML for notebooks. Names and reasons are text, never markup."""
    return "\n".join(map(_html, tables))


def _html(table: Table) -> str:
    styles = [_LEFT if column.left else _RIGHT for column in table.shown]

    def row(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(cells, styles, strict=True)
        return "<tr>" + "".join(f'<{tag} style="{style}">{inert(cell)}</{tag}>' for cell, style in pairs) + "</tr>"

    notes = "<br>".join(map(inert, table.lines))
    below = f'<p style="font-size: 90%; opacity: 0.75; margin-top: 0.2em">{notes}</p>' if notes else ""
    title = table.title and f'<caption style="{_TITLE}">{inert(table.title)}</caption>'
    above = f"<p>{inert(table.lead)}</p>" if table.lead else ""
    rows = "".join(row("td", cells) for cells in table.texts)
    return f"{above}<table>{title}<thead>{row('th', table.titles)}</thead><tbody>{rows}</tbody></table>{below}"


def inert(text: str) -> str:
    """Escape what HTML reads, and control characters."""
    return escape(printable(text))
