"""The few lines that a run ends in: who played how well, and what the figures mean. ``--stats`` has the rest."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from rich.cells import cell_len, set_cell_size

from agents.common.terminal import printable
from benchmark.score.document import EstimateView
from benchmark.show.board import OVER, found_tables
from benchmark.show.notes import (
    SHORT_FIRST,
    agent_note,
    agent_warning,
    further_protocols,
    scale_sentence,
    source_notes,
)
from benchmark.show.table import Figure, estimate_figure, number

MOST_LINES = 10
"""With the two lines that say how to go on, a run ends in a dozen."""

MOST_SCENARIOS = 4  # that have a column of their own, where the terminal is wide enough
MOST_LETTERS = 28  # of an agent's name

MARK = "*"
"""Behind the score of an agent that does no better than play that doesn't read."""


def summary_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """The agents, best first, with their scores, success and invalid responses; below them what 0 and 1 are.

    Args:
        document: a :class:`benchmark.score.document.ViewDocument`.
        width: of the terminal, in letters. Columns of single scenarios are left out where they don't fit.
    """
    scores = document["scores"]
    rows = _rows(document)
    beside = [table.brief for table in found_tables(document)]
    counted = _counted([row for row in scores if not _on_a_ladder(document, row)])
    told = [
        counted,
        scale_sentence(scores),
        _without_scale(scores),
        *beside,
        _marked(rows),
        _warned(scores),
        _noted(scores),
    ]
    told += [f"{note[0].upper()}{note[1:]}." for note in (*further_protocols(scores), *source_notes(document))]
    notes = wrap(" ".join(filter(None, told)), width)
    room = max(2, MOST_LINES - 1 - len(notes))
    left_out = [] if len(rows) <= room else [f"and {len(rows) - room + 1} more agents"]
    shown = rows if not left_out else rows[: room - 1]
    return [*_aligned(shown, width), *left_out, *notes]


Row = dict[str, str]
"""An agent's texts by the titles of their columns."""


def _rows(document: Mapping[str, Any]) -> list[Row]:
    """All agents, best first; columns are those that any agent has something in."""
    rows: list[Row] = []
    scores, tables = document["scores"], found_tables(document)
    scenarios = list(dict.fromkeys(row["scenario"] for row in scores))
    single, unscaled = len(scenarios) == 1, _unscaled(scores)
    for overall in _best_first(document):
        own = {row["scenario"]: row for row in scores if row["agent"] == overall["agent"]}
        row = {"agent": _short(overall["agent"])}
        if single:
            one = own[scenarios[0]]
            row["mean return"] = _estimate(one["mean_return"], ".2f")
            row["score"] = _marked_score(one)
            for rating in document["ratings"]:
                if rating["agent"] == overall["agent"]:
                    row["rating"] = _estimate(rating["rating"], "+.0f")
        else:
            row["overall score"] = _marked_score(overall)
        known = [one["success_rate"] for one in own.values() if not _on_a_ladder(document, one)]
        for table in tables:
            figures = table.figures([one for one in table.rows if one["agent"] == overall["agent"]])
            row |= {title: _text(figure) for title, figure in figures.items()}
        over_all = not single and any(one["success"] for one in document["overall"])
        row["success"] = _percent([overall["success"]] if over_all else known)
        row["invalid"] = "" if overall["invalid_rate"] is None else f"{overall['invalid_rate']:.0%}"
        if not single and len(scenarios) <= MOST_SCENARIOS:
            for name in scenarios:
                title, key = (f"{name} return", "mean_return") if name in unscaled else (name, "normalized")
                row[title] = _value(own.get(name, {}).get(key))
        rows.append(row)
    return rows


def _unscaled(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """The scenarios without a 0 and a 1, as those of several players mostly are; unknown until they are played."""
    scaled = {row["scenario"] for row in scores if row["normalized"]}
    played = [row["scenario"] for row in scores if row["episodes"]]
    return [scenario for scenario in dict.fromkeys(played) if scenario not in scaled]


def _without_scale(scores: Sequence[Mapping[str, Any]]) -> str:
    """What is in no score, where other scenarios are or a column says nothing of it."""
    names = _unscaled(scores)
    if not names or len({row["scenario"] for row in scores}) == 1:
        return ""
    told = ", ".join(names) if len(names) <= MOST_SCENARIOS else f"{len(names)} scenarios"
    return f"No scale, so returns and in no score: {told}."


def _on_a_ladder(document: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a scenario is a level among others, whose episodes were put where they tell most of the agent's level."""
    ladders = document.get("ladders", ())
    return any(rung["scenario"] == row["scenario"] for ladder in ladders for rung in ladder["rungs"])


def _best_first(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The agents' overall rows; with a single scenario, in the order of its ranks."""
    overall: list[Mapping[str, Any]] = document["overall"]
    if len({row["scenario"] for row in document["scores"]}) != 1:
        return overall
    order = [row["agent"] for row in document["scores"]]
    return sorted((row for row in overall if row["agent"] in order), key=lambda row: order.index(row["agent"]))


def _estimate(estimate: EstimateView | None, form: str) -> str:
    return _text(estimate_figure(estimate, form))


def _text(figure: Figure) -> str:
    return f"{figure.text} {figure.interval}".strip()


def _marked_score(row: Mapping[str, Any]) -> str:
    text = _estimate(row["normalized"], ".2f")
    return f"{text} {MARK}" if row["above_blind"] is False else text


def _value(estimate: EstimateView | None) -> str:
    return "" if estimate is None else number(estimate["value"], ".2f")


def _percent(shares: Sequence[EstimateView | None]) -> str:
    """The mean of those shares that are known, in percent."""
    known = [share["value"] for share in shares if share is not None]
    return f"{sum(known) / len(known):.0%}" if known else ""


def _short(name: str) -> str:
    name = printable(name)  # before it is measured
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _counted(scores: Sequence[Mapping[str, Any]]) -> str:
    """Over what the figures are means: ``Means of 50 episodes``, in each scenario."""
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


def _marked(rows: Sequence[Row]) -> str:
    marked = any(text.endswith(MARK) for row in rows for text in row.values())
    return f"{MARK}: no better than 0, within chance." if marked else ""


def _noted(scores: Sequence[Mapping[str, Any]]) -> str:
    """A line on those of whom there is more to know: why one isn't ranked, or that several models answered."""
    names = dict.fromkeys(_short(row["agent"]) for row in scores if agent_note(row))
    return f"Notes on {', '.join(names)}: add --stats." if names else ""


def _warned(scores: Sequence[Mapping[str, Any]]) -> str:
    """Why the figures of an agent aren't what they seem; of the first such agent, the notes name the others too."""
    warned = [row for row in scores if agent_warning(row)]
    if not warned:
        return ""
    own = [row for row in warned if row["agent"] == warned[0]["agent"]]
    names = dict.fromkeys(name for row in own for name in row["left_out"])
    warning = agent_warning({"left_out": names, "eaten_up": sum(row["eaten_up"] for row in own)})
    return f"{_short(own[0]['agent'])}: {warning}."


def _aligned(rows: Sequence[Row], width: int) -> list[str]:
    """A line of titles and one for each row, as wide as the terminal at most."""
    titles = [
        title for title in dict.fromkeys(title for row in rows for title in row) if any(row.get(title) for row in rows)
    ]
    sizes = {title: max(map(cell_len, (title, *(row.get(title, "") or "-" for row in rows)))) for title in titles}
    while len(titles) > 2 and sum(sizes[title] + 2 for title in titles) - 2 > width:
        titles.pop()  # the last ones tell the least: single scenarios, then the share of invalid responses

    def line(cells: Mapping[str, str]) -> str:
        first, *others = titles
        texts = [set_cell_size(cells[first], sizes[first])]
        texts += [" " * (sizes[title] - cell_len(cells[title])) + cells[title] for title in others]
        return "  ".join(texts).rstrip()

    return [
        line({title: title for title in titles}),
        *(line({t: row.get(t, "") or "-" for t in titles}) for row in rows),
    ]
