"""A board's tables as the page draws them: with bars, addresses and real minus signs, and its own ones around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

from agents.common.intervals import is_above
from benchmark.score.beside import size_of
from benchmark.score.document import AgentView, EstimateView, OverallView, ScenarioView, ScoreView, ViewDocument
from benchmark.score.scores import ranked_by
from benchmark.show import board
from benchmark.show.notes import ENDS, by_suite, protocol_note, scale_ends
from benchmark.show.table import Bar, Column, Elsewhere, Figure, Table, estimate_figure, number, value
from textgames.scenarios import ABOUT_SUITES

MOST_COLUMNS = 6  # scenarios that the overall table shows as columns, if it is over no more
MOST_BEST = 3  # names of agents that share the first rank of a scenario, in the list of scenarios
LOCAL, SCRIPTED, SERVED, OWN = "local model", "scripted", "served model", "Python policy"
RATING_NOTE = "Bradley-Terry ratings on the Elo scale: 400 points more are odds of 10 to 1; the mean is 0."
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


class Sortable:
    """A table as the page draws it; rows are in its default order."""

    def __init__(self, table: Table) -> None:
        """Draw the columns that the table's rows need."""
        self.name, self.sorted_by, self.details = table.key, table.sorted_by, table.details
        self.caption = table.caption or table.title.capitalize()
        self.heading = self.caption.rpartition(": ")[2].capitalize()  # below the scenario's name
        self.notes = [note for note in table.notes if note and not isinstance(note, Elsewhere)]
        self.columns = [
            column if column.is_name else replace(column, title=column.title[:1].upper() + column.title[1:])
            for column in table.shown
        ]
        keys = [column.key for column in self.columns]
        self.head = "agent" if "agent" in keys else keys[0]  # whose cells are the rows' headings
        # values are mapped linearly onto 2..98, so that every interval's ends and the marks are on it
        barred = [row[column.key] for column in self.columns if column.bar for row in table.rows]
        seen = [end for one in barred if one for end in (*_ends(one), one["value"])] + list(table.marks)
        low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)

        def place(value: float) -> float:
            return round(2 + 96 * (value - low) / (high - low or 1.0), 2)

        def drawn(column: Column[Any], figure: Figure, row: Any) -> Figure:
            bar = None
            if column.bar and (estimate := row[column.key]) is not None:
                lowest, highest = _ends(estimate)
                bar = Bar(place(lowest), place(estimate["value"]), place(highest), tuple(map(place, table.marks)))
            text, interval = figure.text, figure.interval
            if column.key != "agent" and not isinstance(figure.sort, str):
                text, interval = (part.replace("-", MINUS) for part in (text, interval))
            return figure._replace(text=text or DASH, interval=interval, bar=bar)

        self.rows = [
            [drawn(column, figure, row) for column, figure in zip(self.columns, figures, strict=True)]
            for row, figures in zip(table.rows, table.cells, strict=True)
        ]

    @cached_property
    def texts(self) -> frozenset[str]:
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


def _ends(estimate: EstimateView) -> tuple[float, float]:
    low, high = estimate["low"], estimate["high"]
    return (estimate["value"], estimate["value"]) if low is None or high is None else (low, high)


class Section(NamedTuple):
    """A scenario's part of the leaderboard."""

    name: str
    facts: tuple[tuple[str, str], ...]  # (name, value)
    tables: tuple[Sortable, ...]
    game: str  # its environment's id
    definitions: Sequence[tuple[str, str]]  # (term, meaning) of its columns


class Group(NamedTuple):
    """The sections of one suite's scenarios."""

    suite: str
    about: str
    sections: tuple[Section, ...]


def grouped_sections(document: ViewDocument) -> list[Group]:
    """Return the scenarios' sections by suite; one group without a name if all of them are of one suite."""
    sections = {scenario["name"]: scenario_section(document, scenario) for scenario in document["scenarios"]}
    groups = by_suite(sections)
    if len(groups) < 2:
        return [Group("", "", tuple(sections.values()))] if sections else []
    return [
        Group(suite, ABOUT_SUITES.get(suite, "scenarios of no suite"), tuple(sections[name] for name in names))
        for suite, names in groups.items()
    ]


def scenario_section(document: ViewDocument, scenario: ScenarioView) -> Section:
    """Return one scenario's facts, its table of scores and, if agents meet in it, its table of ratings."""
    name = scenario["name"]
    scores = [score for score in document["scores"] if score["scenario"] == name]
    scores.sort(key=lambda score: (score["rank"] is None, score["rank"] or 0))
    replayed = [episode["agents"].values() for episode in document["episodes"] if episode["scenario"] == name]
    shown = {agent for agents in replayed for agent in agents}
    table = board.score_table(name, scores)
    rank, agent, *others = table.columns

    def leading(row: ScoreView) -> Figure:
        """Lead from the agent's name to its first episode, if the page has it."""
        href = address("replay", scenario=name, a=row["agent"]) if row["agent"] in shown else ""
        return agent.figure(row)._replace(href=href)

    if not any(row["success_rate"] for row in scores):
        others = [column for column in others if column.key != "success"]
    tables = [replace(table, columns=[rank, replace(agent, figure=leading), *others])]
    if ratings := [rating for rating in document["ratings"] if rating["scenario"] == name]:
        table = board.rating_table(name, ratings)
        tables.append(replace(table, notes=(RATING_NOTE, *table.notes)))
    drawn = tuple(map(Sortable, [*tables, *board.further_tables(name, scores)]))
    terms = [(column.title, column.explain) for column in drawn[0].columns if column.explain and column.key != "rank"]
    return Section(name, tuple(_facts(scenario, scores)), drawn, scenario["env_id"], terms)


def address(view: str, **params: str) -> str:
    """Return the address of a view within the page."""
    return f"#{view}?{urlencode(params)}"


def _facts(scenario: ScenarioView, scores: Sequence[ScoreView]) -> Iterator[tuple[str, str]]:
    settings = ", ".join(f"{key}={value}" for key, value in scenario["kwargs"].items() if key != "max_steps")
    yield "environment", scenario["env_id"]
    yield "settings", settings or "defaults"
    yield "rounds", f"at most {scenario['horizon']}"
    yield "protocol", protocol_note(scenario)
    if scenario["success_means"]:
        yield "success", f"the player {scenario['success_means']}"
    yield "seeds", f"from {scenario['first_seed']}"
    if (count := board.same_episodes(scores)) is not None:
        yield "episodes", f"{count} for each agent"
    for end, worth, source in scale_ends(scores):
        text = number(worth).replace("-", MINUS)
        yield f"{end} return", text + (f", {source}" if source and source != end else "")


def overall_table(document: ViewDocument) -> Sortable:
    """Draw the overall scores, with each agent's kind and size and, if they are few, each scenario's score."""
    table, names = board.overall_table(document), document["overall_scenarios"]
    agents = {agent["name"]: agent for agent in document["agents"]}
    about: dict[str, Any] = {"first": "ascending", "optional": True}

    columns = [
        *table.columns,
        Column("kind", "kind", lambda row: _word(kind_of(agents[row["agent"]])), **about),
        replace(board.SIZE, figure=lambda row: board.size_figure(size_of(agents[row["agent"]])), optional=True),
    ]
    if not any(map(size_of, document["agents"])):
        columns.pop()
    if len(names) <= MOST_COLUMNS:
        columns += [_score_in(document, name, say_unranked=True) for name in names]
    return Sortable(replace(table, columns=columns))


def _score_in(document: ViewDocument, name: str, *, say_unranked: bool = False) -> Column[OverallView]:
    """Make a column of a scenario's normalised scores; unranked ones are shown and may be said to be so."""
    scores = {score["agent"]: score for score in document["scores"] if score["scenario"] == name}

    def figure(row: OverallView) -> Figure:
        if (score := scores.get(row["agent"])) is None:
            return Figure()
        note = "not ranked" if say_unranked and score["rank"] is None else ""
        return estimate_figure(score["normalized"], ".2f")._replace(note=note)

    return Column(name, name, figure, is_name=True)


def suite_grid(document: ViewDocument, suite: str, names: Sequence[str]) -> Sortable | None:
    """Draw the agents over the scenarios of one suite, a normalised score each; ``None`` if fewer than two have one."""
    scaled = dict.fromkeys(row["scenario"] for row in document["scores"] if row["normalized"])
    names = [name for name in names if name in scaled]
    if len(names) < 2:
        return None
    played = {row["agent"] for row in document["scores"] if row["scenario"] in names}
    columns = [board.AGENT, *(_score_in(document, name) for name in names)]
    rows = [row for row in document["overall"] if row["agent"] in played]
    notes = [f"Normalised scores: {ENDS}."]
    return Sortable(Table(f"suite-{suite}", "", columns, notes, rows=rows, caption=f"{suite}: normalised scores"))


def scenario_index(document: ViewDocument) -> Sortable:
    """Draw every scenario with its game, its length, and its best agents; each leads to its own view."""
    known = {scenario["name"]: scenario for scenario in document["scenarios"]}

    def mean(row: ScoreView) -> float:
        ranked = ranked_by(row)
        return ranked["value"] if ranked else float("-inf")

    rows: list[dict[str, Any]] = []
    for suite, names in by_suite(known).items():
        for name in names:
            first = [row for row in document["scores"] if row["scenario"] == name and row["rank"] == 1]
            # those with the highest mean; the others that share their rank aren't told apart
            best = [row for row in first if not is_above(mean(first[0]), mean(row))]
            rows.append({**known[name], "suite": suite, "best": best, "alike": len(first) - len(best)})

    def leading(row: Any) -> Figure:
        return Figure(row["name"], row["name"], href=address("leaderboard", scenario=row["name"]))

    def agents(row: Any) -> Figure:
        named = [score["agent"] for score in row["best"]]
        more = f" and {len(named) - MOST_BEST} more" if len(named) > MOST_BEST else ""
        more += f"; {row['alike']} not told apart" if row["alike"] else ""
        text = ("tie: " if len(named) > 1 else "") + ", ".join(named[:MOST_BEST]) + more
        return Figure(text, named[0].casefold() if named else None)

    def score(row: Any) -> Figure:
        text, sort, *_ = estimate_figure(
            next((one["normalized"] or one["mean_return"] for one in row["best"]), None), ".2f"
        )
        is_return = bool(text) and not row["best"][0]["normalized"]
        return Figure(text, note="return") if is_return else Figure(text, sort)

    columns: tuple[Column[Any], ...] = (
        Column("scenario", "scenario", leading, "ascending"),
        Column("game", "game", lambda row: _word(game_name(row["env_id"])), "ascending"),
        value("suite", first="ascending"),
        value("num_players", "players", first="ascending"),
        value("horizon", "rounds, at most", first="ascending"),
        Column("best", "best agents", agents, "ascending"),
        Column("score", "their score", score),
    )
    note = f"Score: normalised, {ENDS}; where a game has no such scale, the mean return."
    return Sortable(Table("scenarios", "", columns, [note], rows=rows, caption="All scenarios", sorted_by="suite"))


def _word(text: str) -> Figure:
    return Figure(text, text)


def kind_of(agent: AgentView) -> str:
    """Name the sort of player that an agent is: a script, a model in the run's own process, one behind a server."""
    kind, settings = agent["kind"], agent["settings"]
    if kind == "scripted":
        return SCRIPTED
    if kind == "python":
        return OWN
    own_process = "model_class" in settings or kind in ("hf", "vllm") or kind.startswith("tiny")
    return LOCAL if own_process else SERVED


def game_name(env_id: str) -> str:
    """Return the name of a game for people: ``TextFrozenLake-v0`` is ``Frozen Lake``."""
    name = re.sub(r"-v\d+$", "", env_id.rpartition(":")[2].removeprefix("Text"))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
