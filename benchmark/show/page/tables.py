"""The leaderboard's tables as the page draws them: the columns of all outputs, with bars and addresses.

The template only writes these down, so the tables can be read, printed and searched without any script.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from benchmark.score.document import EstimateView, OverallView, RatingView, ScenarioView, ScoreView, ViewDocument
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
from benchmark.show.tables.figures import Column, Figure, Row, estimate_figure, number
from benchmark.show.tables.notes import SUITE_NOTE, overall_notes, protocol_note, rating_notes, score_notes, suite_notes
from benchmark.show.tables.scale import scale_ends
from benchmark.show.tables.suites import by_suite
from textgames.scenarios import ABOUT_SUITES

MOST_COLUMNS = 6
"""The overall table shows the scenarios that it is over as columns where there are no more than these."""

RATING_NOTE = "Bradley-Terry ratings on the Elo scale: 400 points more are odds of 10 to 1; the mean is 0."

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"

Scaling = Callable[[float], float]  # from a value to its place on a bar, 0 to 100


class Bar(NamedTuple):
    """An interval on a scale of 0 to 100: its ends, its point, and marks for blind play and the reference."""

    low: float
    value: float
    high: float
    marks: tuple[float, ...] = ()


class Drawn(NamedTuple):
    """A figure as the page draws it: with a real minus sign, a bar, and the address that it leads to."""

    text: str
    sort: float | str | None
    interval: str = ""
    note: str = ""
    bar: Bar | None = None
    href: str = ""

    @property
    def sort_text(self) -> str:
        return f"{self.sort:.7g}" if isinstance(self.sort, float) else str(self.sort)


class Table(NamedTuple):
    """One sortable table; ``rows`` are in its default order, by ``sorted_by``."""

    name: str
    caption: str
    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[Drawn, ...], ...]
    sorted_by: str = "rank"
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()  # notes that are there for who asks

    @property
    def head(self) -> str:
        """The key of the column whose cells are the rows' headings."""
        keys = [column.key for column in self.columns]
        return "agent" if "agent" in keys else keys[0]

    @property
    def texts(self) -> frozenset[str]:
        """The keys of the columns that hold words."""
        return frozenset(
            column.key
            for place, column in enumerate(self.columns)
            if any(isinstance(row[place].sort, str) for row in self.rows)
        )

    @property
    def narrow(self) -> int:
        """The number, from 1, of the column that a phone shows beside the rank and the name: the one with bars."""
        places = [place for place, column in enumerate(self.columns) if column.key not in ("rank", self.head)]
        return 1 + next((place for place in places if self.columns[place].bar), places[0] if places else 0)

    @property
    def heading(self) -> str:
        """What it shows, where the scenario's name stands above it already."""
        return self.caption.rpartition(": ")[2].capitalize()


class Section(NamedTuple):
    """A scenario's part of the leaderboard: its facts as (name, value), and its tables."""

    name: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    game: str  # its environment's id
    definitions: tuple[tuple[str, str], ...]  # (term, meaning) of what its columns count


class Group(NamedTuple):
    """The sections of one suite's scenarios, with what it tests."""

    suite: str
    about: str
    sections: tuple[Section, ...]


def overall_table(document: ViewDocument, further: Sequence[Column[OverallView]] = ()) -> Table:
    """Agents over the overall scenarios: the overall score, ``further`` columns, and each scenario's score."""
    names = document["overall_scenarios"]
    scores = {(score["agent"], score["scenario"]): score for score in document["scores"]}
    scale = _scale((row["normalized"] for row in document["overall"]), (0.0, 1.0))
    columns = capitalised(OVERALL) + list(further)
    if len(names) <= MOST_COLUMNS:
        columns += [_scenario_column(name, scores) for name in names]
    table = _table(
        "overall", f"All agents on the same scenarios, {OVER}", columns, document["overall"], scale, (0.0, 1.0)
    )
    return table._replace(notes=tuple(overall_notes(document["overall"], document["scores"], names)))


def suite_table(document: ViewDocument) -> Table | None:
    """Agents over whole suites; ``None`` where that says no more than the overall table."""
    suites = shown_suites(document)
    if not suites:
        return None
    rows: list[OverallView] = [{**row, "lacks": []} for row in document["overall"]]
    columns = [*capitalised(OVERALL[1:2]), *suite_columns(suites), *capitalised(OVERALL[-1:])]
    table = _table("suites", "All agents, suite by suite", columns, rows, _scale([]))
    return table._replace(sorted_by=columns[1].key, notes=(SUITE_NOTE,), details=tuple(suite_notes(suites)[1:]))


def tables_of_text(document: ViewDocument) -> list[Table]:
    """What the text does to scores, where twins or several wordings were played."""
    return [
        plain_table(one.key, one.title.capitalize(), capitalised(one.columns), one.rows)._replace(
            sorted_by="", notes=one.notes
        )
        for one in found_tables(document)
    ]


def grouped_sections(document: ViewDocument) -> list[Group]:
    """The scenarios' sections by suite; one group without a name where all of them are of one suite."""
    sections = {scenario["name"]: scenario_section(document, scenario) for scenario in document["scenarios"]}
    groups = by_suite(sections)
    if len(groups) < 2:
        return [Group("", "", tuple(sections.values()))] if sections else []
    return [
        Group(suite, ABOUT_SUITES.get(suite, "scenarios of no suite"), tuple(sections[name] for name in names))
        for suite, names in groups.items()
    ]


def scenario_section(document: ViewDocument, scenario: ScenarioView) -> Section:
    """One scenario's facts, its table of scores and, where agents meet, its table of ratings."""
    name = scenario["name"]
    scores = [score for score in document["scores"] if score["scenario"] == name]
    scores.sort(key=lambda score: (score["rank"] is None, score["rank"] or 0))
    tables = [_score_table(document, scenario, scores)]
    ratings: list[RatingView] = [rating for rating in document["ratings"] if rating["scenario"] == name]
    if ratings:
        scale = _scale(rating["rating"] for rating in ratings)
        table = _table(f"{name}-ratings", f"{name}: ratings, head to head", capitalised(RATINGS), ratings, scale)
        tables.append(table._replace(sorted_by="rating", notes=(RATING_NOTE, *rating_notes(ratings))))
    tables += _further_tables(name, scores)
    return Section(
        name, _facts(scenario, scores), tuple(tables), scenario["env_id"], tuple(_definitions(scenario, tables[0]))
    )


def _further_tables(name: str, scores: Sequence[ScoreView]) -> list[Table]:
    """What the game tells besides the return, and the returns by seat; agents in the order of their ranks."""
    tables = []
    for kind, caption, columns in further_columns(scores):
        columns = [*capitalised([AGENT]), *columns]
        tables.append(plain_table(f"{name}-{kind}", f"{name}: {caption}", columns, scores)._replace(sorted_by=""))
    return tables


def _score_table(document: ViewDocument, scenario: ScenarioView, scores: Sequence[ScoreView]) -> Table:
    """One row an agent, whose name leads to its first episode where the page has one."""
    name = scenario["name"]
    shown = {
        agent for episode in document["episodes"] if episode["scenario"] == name for agent in episode["agents"].values()
    }
    marks = [value for _, value, _ in scale_ends(scores)]
    scale = _scale((score["mean_return"] for score in scores), marks)
    known = any(row["success_rate"] for row in scores)
    columns = [column for column in capitalised(SCORES) if known or column.key != "success"]
    table = _table(name, f"{name}: scores, {OVER}", columns, scores, scale, marks)
    rows = tuple(
        (rank, agent._replace(href=address("replay", scenario=name, a=agent.text)), *others)
        if agent.text in shown
        else (rank, agent, *others)
        for rank, agent, *others in table.rows
    )
    return table._replace(rows=rows, notes=tuple(score_notes(scores)))


def plain_table(name: str, caption: str, columns: Iterable[Column[Row]], rows: Sequence[Row]) -> Table:
    """A table whose figures have no bars."""
    return _table(name, caption, columns, rows, _scale([]))


def address(view: str, **params: str) -> str:
    """The address of a view within the page."""
    return f"#{view}?{urlencode(params)}"


def _definitions(scenario: ScenarioView, scores: Table) -> Iterator[tuple[str, str]]:
    """What the columns of a scenario's table count."""
    own = {"aim": scenario["success_means"] or "met the game's aim", "protocol": protocol_note(scenario)}
    for column in scores.columns:
        if column.term:
            yield column.term, column.meaning.format(**own)


def _table(
    name: str,
    caption: str,
    columns: Iterable[Column[Row]],
    rows: Sequence[Row],
    scale: Scaling,
    marks: Sequence[float] = (),
) -> Table:
    """The needed columns of these rows; ``scale`` and ``marks`` are those of the bars."""
    needed = [column for column in columns if column.needed(rows)]
    places = tuple(map(scale, marks))
    drawn = tuple(tuple(_drawn(column, row, scale, places) for column in needed) for row in rows)
    return Table(name, caption, tuple(needed), drawn)


def _drawn(column: Column[Row], row: Row, scale: Scaling, marks: tuple[float, ...]) -> Drawn:
    figure = column.figure(row)
    if column.key == "agent":
        return Drawn(*figure)
    bar = None
    if column.bar and figure.text:
        estimate: EstimateView = row[column.key]
        low, high = _ends(estimate)
        bar = Bar(scale(low), scale(estimate["value"]), scale(high), marks)
    text, interval = (part.replace("-", MINUS) for part in (figure.text or DASH, figure.interval))
    return Drawn(text, figure.sort, interval, figure.note, bar)


def _facts(scenario: ScenarioView, scores: Sequence[ScoreView]) -> tuple[tuple[str, str], ...]:
    settings = ", ".join(f"{key}={value}" for key, value in scenario["kwargs"].items() if key != "max_steps")
    facts = [
        ("environment", scenario["env_id"]),
        ("settings", settings or "defaults"),
        ("rounds", f"at most {scenario['horizon']}"),
        ("success", scenario["success_means"] and f"the player {scenario['success_means']}"),
        ("seeds", f"from {scenario['first_seed']}"),
    ]
    if (count := same_episodes(scores)) is not None:
        facts.append(("episodes", f"{count} for each agent"))
    for end, value, source in scale_ends(scores):
        text = number(value).replace("-", MINUS)
        facts.append((f"{end} return", text + (f", {source}" if source and source != end else "")))
    return tuple((name, value) for name, value in facts if value)


def _scale(estimates: Iterable[EstimateView | None], also: Sequence[float] = ()) -> Scaling:
    """A linear map onto 2..98 that shows every interval's ends and the values of ``also``."""
    seen = [end for estimate in estimates if estimate for end in (*_ends(estimate), estimate["value"])] + list(also)
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    span = high - low or 1.0
    return lambda value: round(2 + 96 * (value - low) / span, 2)


def _ends(estimate: EstimateView) -> tuple[float, float]:
    """An interval's ends, or the value twice where there is no interval."""
    low, high = estimate["low"], estimate["high"]
    return (estimate["value"], estimate["value"]) if low is None or high is None else (low, high)


def capitalised(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    """The columns with titles as the page has them."""
    return [replace(column, title=column.title[:1].upper() + column.title[1:]) for column in columns]


def _scenario_column(name: str, scores: Mapping[tuple[str, str], ScoreView]) -> Column[OverallView]:
    """A scenario's normalised scores in the overall table; unranked ones are shown and said to be so."""

    def figure(row: OverallView) -> Figure:
        score = scores.get((row["agent"], name))
        if score is None:
            return Figure()
        return estimate_figure(score["normalized"], ".2f")._replace(note="not ranked" if score["rank"] is None else "")

    return Column(name, name, figure)
