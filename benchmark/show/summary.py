"""The few lines that a run ends in. ``--stats`` has the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size

from agents.common.terminal import printable
from benchmark.score.document import OverallView, ScoreView
from benchmark.show.board import OVER, found_tables, suite_rating
from benchmark.show.notes import SHORT_FIRST, agent_note, agent_warning, further_protocols, scale_sentence, source_notes
from benchmark.show.table import Column, Figure, Table, estimate_figure, figure_of

MOST_LINES = 10  # with the two lines on further commands, a run ends in a dozen
MOST_SCENARIOS = 4  # that have a column of their own, if the terminal is wide enough
MOST_LETTERS = 28  # of an agent's name
MARK = "*"  # behind the score of an agent that does no better than play that doesn't read


def summary_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return the agents, best first, with their scores, success and invalid responses; below them what 0 and 1 are.

    ``width`` is the terminal's, in letters. Columns of single scenarios are left out if they don't fit.
    """
    scores, beside = document["scores"], found_tables(document)
    rungs = {rung["scenario"] for ladder in document.get("ladders", ()) for rung in ladder["rungs"]}
    # the episodes of levels are put if they tell most of the agent's level
    off_ladders = [row for row in scores if row["scenario"] not in rungs]
    rows = document["overall"]
    if len({row["scenario"] for row in scores}) == 1:  # in the order of its ranks
        order = [row["agent"] for row in scores]
        rows = sorted((row for row in rows if row["agent"] in order), key=lambda row: order.index(row["agent"]))
    table = Table("", "", _columns(document, off_ladders, beside), rows=rows)
    played, names = {row["scenario"] for row in scores}, _unscaled(scores)
    unscaled = ", ".join(names) if len(names) <= MOST_SCENARIOS else f"{len(names)} scenarios"
    noted = dict.fromkeys(_short(row["agent"]) for row in scores if agent_note(row))
    is_marked = any(text.endswith(MARK) for row in table.texts for text in row)
    told = [
        _counted(off_ladders),
        scale_sentence(scores),
        f"No scale, so returns and in no score: {unscaled}." if unscaled and len(played) > 1 else "",
        *(f"{said[0].upper()}{said[1:]}." for one in document["suites"] if (said := suite_rating(one)[1])),
        *(one.brief for one in beside),
        f"{MARK}: no better than 0, within chance." if is_marked else "",
        _warned(scores),
        f"Notes on {', '.join(noted)}: add --stats." if noted else "",
    ]
    told += [f"{note[0].upper()}{note[1:]}." for note in (*further_protocols(scores), *source_notes(document))]
    notes = wrap(" ".join(filter(None, told)), width)
    room, count = max(2, MOST_LINES - 1 - len(notes)), len(table.rows)
    left_out = [] if count <= room else [f"and {count - room + 1} more agents"]
    return [*_aligned(table, room if count <= room else room - 1, width), *left_out, *notes]


def _columns(
    document: Mapping[str, Any], off_ladders: Sequence[ScoreView], beside: Sequence[Table]
) -> list[Column[OverallView]]:
    scores = {(row["agent"], row["scenario"]): row for row in document["scores"]}
    scenarios = list(dict.fromkeys(row["scenario"] for row in document["scores"]))
    unscaled = _unscaled(document["scores"])

    def column(title: str, figure: Callable[[OverallView], Figure]) -> Column[OverallView]:
        return Column(title, title, figure, needed=lambda rows: any(figure(row).text for row in rows))

    def figures(row: OverallView) -> dict[str, Figure]:
        own = [one.figures([line for line in one.rows if line["agent"] == row["agent"]]) for one in beside]
        return {title: figure for each in own for title, figure in each.items()}

    def success(row: OverallView) -> Figure:
        own = [one["success_rate"] for one in off_ladders if one["agent"] == row["agent"]]
        over_all = len(scenarios) > 1 and any(one["success"] for one in document["overall"])
        known = [share["value"] for share in ([row["success"]] if over_all else own) if share is not None]
        return Figure(f"{sum(known) / len(known):.0%}" if known else "")

    def in_scenario(name: str, key: str, form: str = ".2f") -> Callable[[OverallView], Figure]:
        return lambda row: estimate_figure(scores.get((row["agent"], name), {}).get(key), form)

    def rating(title: str, ratings: Mapping[str, Any]) -> Column[OverallView]:
        return column(title, lambda row: estimate_figure(ratings.get(row["agent"]), "+.0f"))

    if len(scenarios) == 1:
        (name,) = scenarios
        first = [
            column("mean return", in_scenario(name, "mean_return")),
            column("score", lambda row: _marked(scores[row["agent"], name])),
            rating("rating", {row["agent"]: row["rating"] for row in document["ratings"]}),
        ]
    else:
        first = [column("overall score", _marked)]
        first += [rating(f"{one['name']} (Elo)", suite_rating(one)[0]) for one in document["suites"]]
    last = [column("success", success), column("invalid", lambda row: figure_of(row["invalid_rate"], ".0%"))]
    if 1 < len(scenarios) <= MOST_SCENARIOS:
        for name in scenarios:
            title, key = (f"{name} return", "mean_return") if name in unscaled else (name, "normalized")
            last.append(replace(column(title, in_scenario(name, key)), optional=True))
    titles = dict.fromkeys(title for row in document["overall"] for title in figures(row))
    told = [column(title, lambda row, title=title: figures(row).get(title, Figure())) for title in titles]  # type: ignore[misc]
    return [column("agent", lambda row: Figure(_short(row["agent"]))), *first, *told, *last]


def _unscaled(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the played scenarios without a 0 and a 1, as those of several players mostly are."""
    scaled = {row["scenario"] for row in scores if row["normalized"]}
    return [*dict.fromkeys(row["scenario"] for row in scores if row["episodes"] and row["scenario"] not in scaled)]


def _marked(row: Mapping[str, Any]) -> Figure:
    figure = estimate_figure(row["normalized"], ".2f")
    return figure._replace(interval=f"{figure.interval} {MARK}".strip()) if row["above_blind"] is False else figure


def _short(name: str) -> str:
    name = printable(name)  # before it is measured
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _counted(scores: Sequence[Mapping[str, Any]]) -> str:
    """Return the episodes that figures are means of, in each scenario: ``Means of 50 episodes``."""
    if not scores:
        return ""
    counts, planned = (sorted({row[name] for row in scores}) for name in ("episodes", "planned"))
    scenarios = list(dict.fromkeys(row["scenario"] for row in scores))
    many, most = (f"{each[0]}" if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in (counts, planned))
    missing = f" of {most} planned" if any(row["episodes"] < row["planned"] for row in scores) else ""
    of = f" of {scenarios[0]}" if len(scenarios) == 1 else ""
    if counts == [0]:
        return f"No episode{of} is scored yet; planned: {most}."
    levels = " to ".join(f"{100 * level:.4g}%" for level in sorted({row["confidence"] for row in scores}))
    one = (planned if missing else counts) == [1]
    lean = f", {SHORT_FIRST}" if missing else ""
    return f"Means of {many}{missing} episode{'' if one else 's'}{of}{lean}, with {levels} {OVER}."


def _warned(scores: Sequence[Mapping[str, Any]]) -> str:
    """Return why the figures of an agent aren't what they seem, for the first such agent."""
    warned = [row for row in scores if agent_warning(row)]
    if not warned:
        return ""
    own = [row for row in warned if row["agent"] == warned[0]["agent"]]
    names = dict.fromkeys(name for row in own for name in row["left_out"])
    warning = agent_warning({"left_out": names, "eaten_up": sum(row["eaten_up"] for row in own)})
    return f"{_short(own[0]['agent'])}: {warning}."


def _aligned(table: Table, count: int, width: int) -> list[str]:
    """Return a line of titles and one for each of so many rows, as wide as the terminal at most."""
    columns = [*zip(table.titles, *table.texts[:count], strict=True)]
    sizes = [max(map(cell_len, column)) for column in columns]
    while len(columns) > 2 and sum(sizes) + 2 * len(columns) - 2 > width:
        columns.pop()  # the last ones tell the least: single scenarios, then the share of invalid responses
        sizes.pop()
    return [
        "  ".join(
            [set_cell_size(first, sizes[0])]
            + [" " * (size - cell_len(cell)) + cell for cell, size in zip(others, sizes[1:], strict=True)]
        ).rstrip()
        for first, *others in zip(*columns, strict=True)
    ]
