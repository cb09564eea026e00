"""The terminal's tables as HTML, for notebooks. The leaderboard page, with replays, is ``benchmark.show.page``."""

from collections.abc import Sequence
from html import escape

from agents.common.terminal import printable
from benchmark.show.tables.terminal import Sheet

_LEFT, _RIGHT = "text-align: left", "text-align: right; font-variant-numeric: tabular-nums"
_TITLE = f"{_LEFT}; font-weight: bold; caption-side: top"


def to_html(sheets: Sequence[Sheet]) -> str:
    """The sheets one below the other. Names and reasons are text, never markup."""
    return "\n".join(_table(sheet) for sheet in sheets)


def _table(sheet: Sheet) -> str:
    styles = [_LEFT if column.startswith("<") else _RIGHT for column in sheet.columns]
    head = _row("th", [column.removeprefix("<") for column in sheet.columns], styles)
    rows = "".join(_row("td", cells, styles) for cells in sheet.rows)
    notes = "<br>".join(_text(note) for note in sheet.notes)
    below = f'<p style="font-size: 90%; opacity: 0.75; margin-top: 0.2em">{notes}</p>' if notes else ""
    title = sheet.title and f'<caption style="{_TITLE}">{_text(sheet.title)}</caption>'
    above = f"<p>{_text(sheet.lead)}</p>" if sheet.lead else ""
    return f"{above}<table>{title}<thead>{head}</thead><tbody>{rows}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    pairs = zip(cells, styles, strict=True)
    return "<tr>" + "".join(f'<{tag} style="{style}">{_text(cell)}</{tag}>' for cell, style in pairs) + "</tr>"


def _text(text: str) -> str:
    return escape(printable(text))
