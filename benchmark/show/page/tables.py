"""The leaderboard's tables as rows of cells: what stands where, how it sorts, and where its interval bar lies.

The template only writes these down, so the tables can be read, printed and searched without any script.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from benchmark.score.document import Estimate, ScenarioView, ScoreView, ViewDocument

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
Direction = Literal["ascending", "descending"]


class Bar(NamedTuple):
    """An interval on a scale of 0 to 100: its ends, its point, and marks for random and optimal play."""

    low: float
    value: float
    high: float
    marks: tuple[float, ...] = ()


class Cell(NamedTuple):
    """One cell: its text, the value that it sorts by (``None`` is always last), and what else is drawn in it."""

    text: str
    sort: float | str | None = None
    interval: str = ""
    bar: Bar | None = None
    note: str = ""
    href: str = ""

    @property
    def sort_text(self) -> str:
        """What it sorts by, as an attribute's text."""
        return f"{self.sort:.7g}" if isinstance(self.sort, float) else str(self.sort)


class Column(NamedTuple):
    """One column; ``first`` is the direction of the first click (best on top), ``bar`` says that cells have bars."""

    key: str
    label: str
    first: Direction = "descending"
    explain: str = ""
    bar: bool = False


class Table(NamedTuple):
    """One sortable table; ``rows`` are in its default order, by ``sorted_by``."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sorted_by: str = "rank"


class Section(NamedTuple):
    """A scenario's part of the leaderboard: its facts as (name, value), and its tables."""

    name: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def number(value: float | None, digits: int = 2) -> str:
    """A number with a real minus sign and as many digits as all others in its column; a dash for none."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def percent(value: float | None, digits: int = 0) -> str:
    """A share as a percentage, without the sign."""
    return number(None if value is None else 100 * value, digits)


def overall_table(document: ViewDocument) -> Table:
    """Agents over all single-player scenarios: the mean normalised score, and each scenario's."""
    names = [scenario["name"] for scenario in document["scenarios"] if scenario["num_players"] == 1]
    scores = {(score["agent"], score["scenario"]): score for score in document["scores"]}
    scale = _scale((row["normalized"] for row in document["overall"]), (0.0, 1.0))
    marks = (scale(0.0), scale(1.0))
    columns = (
        Column("rank", "Rank", "ascending"),
        Column("agent", "Agent", "ascending"),
        Column(
            "normalized", "Normalised score", explain="mean over scenarios; 0 is random play, 1 is optimal", bar=True
        ),
        *(Column(name, name) for name in names),
    )
    rows = [
        (
            _rank(row["rank"]),
            Cell(row["agent"], row["agent"].casefold()),
            _estimate(row["normalized"], scale, marks),
            *(_normalized(scores.get((row["agent"], name))) for name in names),
        )
        for row in document["overall"]
    ]
    return Table("overall", "All scenarios with one player", columns, tuple(rows))


def scenario_section(document: ViewDocument, scenario: ScenarioView) -> Section:
    """One scenario's facts, its table of scores and, where agents meet, its table of ratings."""
    scores = [score for score in document["scores"] if score["scenario"] == scenario["name"]]
    scores.sort(key=lambda score: (score["rank"] is None, score["rank"] or 0))
    tables = [_score_table(document, scenario, scores)]
    ratings = [rating for rating in document["ratings"] if rating["scenario"] == scenario["name"]]
    if ratings:
        scale = _scale(rating["rating"] for rating in ratings)
        columns = (
            Column("agent", "Agent", "ascending"),
            Column("rating", "Rating", explain="Bradley-Terry, Elo points, mean 0", bar=True),
            *(Column(key, key.capitalize()) for key in ("games", "wins", "draws", "losses")),
        )
        rows = tuple(
            (
                Cell(rating["agent"], rating["agent"].casefold()),
                _estimate(rating["rating"], scale, (), digits=0),
                *(
                    Cell(str(count), count)
                    for count in (rating["games"], rating["wins"], rating["draws"], rating["losses"])
                ),
            )
            for rating in sorted(ratings, key=lambda rating: -rating["rating"]["value"])
        )
        caption = f"{scenario['name']}: head-to-head ratings"
        tables.append(Table(f"{scenario['name']}-ratings", caption, columns, rows, "rating"))
    return Section(scenario["name"], _facts(scenario, scores), tuple(tables))


def _score_table(document: ViewDocument, scenario: ScenarioView, scores: Sequence[ScoreView]) -> Table:
    """One row an agent; tokens and costs are left out where nobody has any, and scores where none is normalised."""
    shown = {(name, episode["scenario"]) for episode in document["episodes"] for name in episode["agents"].values()}
    references = _references(scores)
    scale = _scale((score["mean_return"] for score in scores), [value for value, _, _ in references])
    marks = tuple(scale(value) for value, _, _ in references)
    makers: list[tuple[Column, Callable[[ScoreView], Cell]]] = [
        (Column("rank", "Rank", "ascending"), lambda score: _rank(score["rank"])),
        (
            Column("agent", "Agent", "ascending"),
            lambda score: _agent(score, (score["agent"], score["scenario"]) in shown),
        ),
        (Column("episodes", "Episodes"), lambda score: Cell(f"{score['episodes']}", score["episodes"])),
        (Column("mean_return", "Mean return", bar=True), lambda score: _estimate(score["mean_return"], scale, marks)),
        (
            Column("normalized", "Normalised", explain="0 is random play, 1 is optimal"),
            lambda score: _plain(score["normalized"]),
        ),
        (Column("success", "Success, %"), lambda score: _plain(score["success_rate"], percent)),
        (
            Column("invalid", "Invalid, %", "ascending", "responses that named no legal action"),
            lambda score: _plain(score["invalid_rate"], percent)._replace(
                note=_invalid_counts(score["invalid_reasons"])
            ),
        ),
        (Column("length", "Rounds", "ascending"), lambda score: _plain(score["length"], lambda v: number(v, 1))),
        (Column("tokens", "Tokens", "ascending", "per episode"), lambda score: _plain(score["tokens"], _grouped)),
        (Column("cost", "Cost, USD", "ascending"), lambda score: _cost(score["cost"])),
        (
            Column("unscored", "Unscored", "ascending", "episodes that ended in an error: neither won nor lost"),
            lambda score: Cell(f"{score['unscored']}", score["unscored"], note=_counts(score["errors"])),
        ),
    ]
    unneeded = {
        "normalized": all(score["normalized"] is None for score in scores),
        "tokens": not any(score["tokens"] and score["tokens"]["value"] for score in scores),
        "cost": not any(score["cost"] for score in scores),
    }
    filled = [(column, make) for column, make in makers if not unneeded.get(column.key)]
    rows = tuple(tuple(make(score) for _, make in filled) for score in scores)
    return Table(scenario["name"], f"{scenario['name']}: scores", tuple(column for column, _ in filled), rows)


def _agent(score: ScoreView, shown: bool) -> Cell:
    """The agent's name, a link to its first episode where the page has one, and why it isn't ranked."""
    missing = score["planned"] - score["episodes"] - score["unscored"]
    reasons = [f"{score['unscored']} unscored"] if score["unscored"] else []
    reasons += [f"{missing} of {score['planned']} not played"] if missing > 0 else []
    note = "not ranked: " + (", ".join(reasons) or "no episodes") if score["rank"] is None else ""
    href = "#replay?" + urlencode({"scenario": score["scenario"], "a": score["agent"]}) if shown else ""
    return Cell(score["agent"], score["agent"].casefold(), note=note, href=href)


def _facts(scenario: ScenarioView, scores: Sequence[ScoreView]) -> tuple[tuple[str, str], ...]:
    """What a reader must know of a scenario to read its table."""
    settings = ", ".join(f"{key}={value}" for key, value in scenario["kwargs"].items() if key != "max_steps")
    facts = [
        ("environment", scenario["env_id"]),
        ("settings", settings or "defaults"),
        ("horizon", f"{scenario['horizon']} rounds"),
        ("seeds", f"from {scenario['first_seed']}"),
    ]
    for value, label, source in _references(scores):
        facts.append((f"{label} return", number(value) + (f", {source}" if source and source != label else "")))
    return tuple(facts)


def _references(scores: Sequence[ScoreView]) -> list[tuple[float, str, str]]:
    """The ends of the normalised score's scale as (return, name, source).

    They are those of the agent with the most episodes: others may have played fewer.
    """
    if not scores:
        return []
    reference = max(scores, key=lambda score: score["episodes"])["reference"]
    ends = (
        (reference["random"], "random", reference["random_source"]),
        (reference["optimal"], "optimal", reference["optimal_source"]),
    )
    return [(value, label, source) for value, label, source in ends if value is not None]


def _scale(estimates: Iterable[Estimate | None], also: Sequence[float] = ()) -> Callable[[float], float]:
    """A linear map onto 2..98 that shows every interval's ends and the values of ``also``."""
    seen = [end for estimate in estimates if estimate for end in (*_ends(estimate), estimate["value"])] + list(also)
    low, high = (min(seen), max(seen)) if seen else (0.0, 1.0)
    span = high - low or 1.0
    return lambda value: round(2 + 96 * (value - low) / span, 2)


def _ends(estimate: Estimate) -> tuple[float, float]:
    """An interval's ends, or the value twice where there is no interval."""
    low, high = estimate["low"], estimate["high"]
    return (estimate["value"], estimate["value"]) if low is None or high is None else (low, high)


def _estimate(
    estimate: Estimate | None,
    scale: Callable[[float], float],
    marks: tuple[float, ...],
    digits: int = 2,
) -> Cell:
    """A cell with value, interval and bar."""
    cell = _plain(estimate, lambda value: number(value, digits))
    if estimate is None:
        return cell
    low, high = _ends(estimate)
    return cell._replace(bar=Bar(scale(low), scale(estimate["value"]), scale(high), marks))


def _plain(estimate: Estimate | None, form: Callable[[float | None], str] = number) -> Cell:
    """A cell with value and interval."""
    if estimate is None:
        return Cell(DASH)
    low, high = estimate["low"], estimate["high"]
    interval = "" if low is None or high is None else f"[{form(low)}, {form(high)}]"
    return Cell(form(estimate["value"]), estimate["value"], interval)


def _normalized(score: ScoreView | None) -> Cell:
    """A scenario's normalised score in the overall table; unranked scores are shown and said to be so."""
    if score is None:
        return Cell(DASH)
    note = "not ranked" if score["rank"] is None else ""
    return _plain(score["normalized"])._replace(note=note)


def _rank(rank: int | None) -> Cell:
    return Cell(DASH if rank is None else str(rank), rank)


def _cost(cost: float | None) -> Cell:
    return Cell(number(cost, 4 if cost and cost < 0.1 else 2), cost)


def _grouped(value: float | None) -> str:
    """A large number with thin spaces between the thousands."""
    return DASH if value is None else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _counts(counts: dict[str, int]) -> str:
    """``{reason: count}`` as a line, most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason}: {count}" for reason, count in ordered if count)


def _invalid_counts(counts: dict[str, int]) -> str:
    """The same for the reasons of invalid responses, whose names are written with underscores."""
    return _counts({reason.replace("_", " "): count for reason, count in counts.items()})
