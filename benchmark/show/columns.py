"""The columns of the leaderboard's tables, said once: terminal, Markdown and page show the same figures.

``ScoreView, OverallView, RatingView -> Column -> Figure``; a column knows its title, its figures and when it is needed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from agents.protocol import LEGAL_ONLY, RETRIES, STANDARD
from benchmark.score.document import (
    EstimateView,
    LadderView,
    LuckView,
    OverallView,
    ProtocolView,
    RatingView,
    ReliabilityView,
    ScoreView,
    SkillView,
    SuiteView,
    TwinGapView,
    VarianceView,
    WordingView,
)
from benchmark.show.scale import ENDS, above_one, blind_note, scale_sentence

Row = TypeVar(
    "Row",
    ScoreView,
    OverallView,
    RatingView,
    TwinGapView,
    LadderView,
    WordingView,
    VarianceView,
    ReliabilityView,
    ProtocolView,
    SkillView,
)


LARGE = 8
"""A board of more scenarios is shown by suite: one table for each at the terminal, closed ones on the page."""

OVER = "intervals over starts"
"""What the intervals of scores hold over, for the headings of their tables: those over wordings too are in another."""

MOST_NAMES = 12  # of scenarios that a note lists


class Figure(NamedTuple):
    """The content of one cell of a table."""

    text: str = ""  # the value as it is shown; empty where there is none
    sort: float | str | None = None  # the value to sort by; ``None`` goes last
    interval: str = ""  # ``"[0.620, 0.860]"``, or empty
    note: str = ""  # what a reader must know about this value


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a table."""

    key: str  # its name in addresses and scripts; that of the estimate in the row, if it shows one
    title: str  # its heading
    figure: Callable[[Row], Figure]  # what it shows of a row
    first: Literal["ascending", "descending"] = "descending"  # the order that puts the best on top
    explain: str = ""  # what the title leaves open
    bar: bool = False  # whether a page draws the interval of the estimate ``row[key]``
    optional: bool = False  # whether the terminal shows the value alone, and a narrow one nothing
    wide_only: bool = False  # whether a narrow terminal leaves it out
    needed: Callable[[Sequence[Row]], bool] = lambda rows: True  # whether these rows need it
    term: str = ""  # what a page's list of terms calls it; empty where it isn't listed
    meaning: str = ""  # what it counts, where there is room for it; {aim} and {protocol} are the scenario's


def number(value: float, form: str = ".3f") -> str:
    """A number's text; what rounds to zero has no minus sign."""
    text = format(value, form)
    return format(0.0, form) if float(text.rstrip("%")) == 0 else text


def estimate_figure(estimate: EstimateView | None, form: str = ".3f") -> Figure:
    """``0.740`` and ``[0.620, 0.860]``; a share in percent has its sign once: ``74%`` and ``[62, 86]``."""
    if estimate is None:
        return Figure()
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    interval = "" if low is None or high is None else f"[{number(low, form)}, {number(high, form)}]".replace("%", "")
    return Figure(number(value, form), value, interval)


def rank_figure(row: ScoreView | OverallView) -> Figure:
    """A rank as tables show it: ``4``, or ``4=`` where it is shared."""
    return Figure("" if row["rank"] is None else f"{row['rank']}{'=' if row['tied'] else ''}", row["rank"])


def agent_figure(row: Mapping[str, Any]) -> Figure:
    """The agent's name, which sorts without regard to case."""
    return Figure(row["agent"], row["agent"].casefold())


def _scored_agent(row: ScoreView) -> Figure:
    return agent_figure(row)._replace(note=agent_note(row))


def agent_note(row: Mapping[str, Any]) -> str:
    """What a reader must know of an agent in a scenario: why it has no rank, and which models answered under its name.

    Nothing of the rows of other tables than the scores'.
    """
    if "planned" not in row:
        return ""
    missing = row["planned"] - row["episodes"] - row["unscored"]
    reasons = [f"{row['unscored']} unscored"] if row["unscored"] else []
    reasons += [f"{missing} of {row['planned']} not played"] if missing > 0 else []
    notes = ["not ranked, " + (", ".join(reasons) or "no episodes")] if row["rank"] is None else []
    if len(row["served_by"]) > 1:
        models = ", ".join(f"{model} in {episodes} episodes" for model, episodes in row["served_by"].items())
        notes.append(f"answered by {len(row['served_by'])} models: {models}")
    warning = agent_warning(row)
    return "; ".join([*notes, warning] if warning else notes)


def agent_warning(row: Mapping[str, Any]) -> str:
    """Why an agent's figures in a scenario aren't what they seem, which nobody should have to ask for."""
    warnings = []
    if row["left_out"]:
        warnings.append(f"the server refuses {', '.join(row['left_out'])}, which it wasn't sent")
    if row["eaten_up"]:
        warnings.append(f"reasoning left no token for {row['eaten_up']} responses; allow more: reasoning_tokens")
    return "; ".join(warnings)


def _ranked_agent(row: OverallView) -> Figure:
    note = f"not ranked, lacks {listed(row['lacks'])}" if row["lacks"] else ""
    return Figure(row["agent"], row["agent"].casefold(), note=note)


def listed(names: Sequence[str]) -> str:
    """The names, or the first ones and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names if more <= 0 else [*names[:MOST_NAMES], f"{more} more"])


def season_notes(document: Mapping[str, Any]) -> list[str]:
    """Which agents' results are of which season; none where nobody's is."""
    found: dict[str, list[str]] = {}
    for agent in document["agents"]:
        if season := document["sources"][agent["source"]].get("season"):
            found.setdefault(season, []).append(agent["name"])
    return [f"season {season}: {listed(names)}" for season, names in found.items()]


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in ordered if count)


def _luck_column(
    key: str, title: str, value: Callable[[LuckView], float | None], form: str, explain: str, **terms: Any
) -> Column[ScoreView]:
    """A figure on the luck of an agent; it tells nobody's rank, so that no order of it is best."""

    def figure(row: ScoreView) -> Figure:
        shown = value(row["luck"]) if row["luck"] else None
        return Figure() if shown is None else Figure(number(shown, form), shown)

    return Column(key, title, figure, explain=explain, optional=True, needed=_without_luck, **terms)


def _without_luck(rows: Sequence[ScoreView]) -> bool:
    """Whether luck was taken out of these rows' scores by exact values."""
    return any(row["luck"] and row["luck_free_return"] for row in rows)


def protocol_note(row: Mapping[str, Any]) -> str:
    """What the unreadable responses of a scenario led to, and what its prompts didn't tell."""
    told = PROTOCOL_NOTES.get(row["protocol"].partition(":")[0], row["protocol"])
    more = row["protocol"].partition(":")[2] or str(RETRIES)
    unlisted = "; prompts don't list the legal moves" if row["moves"] == "unlisted" else ""
    return f"an unreadable response {told.format(more=more)}{unlisted}"


def further_protocols(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The notes of those that aren't a plain run's, which everybody expects."""
    others = (row for row in rows if any(row[name] != value for name, value in STANDARD.items()))
    return list(dict.fromkeys(map(protocol_note, others)))


PROTOCOL_NOTES = {
    "random": "executes a random legal action",
    "default": "executes the first legal action",
    "forfeit": "loses the episode",
    "retry": "is given again, up to {more} times, and then loses the episode",
    LEGAL_ONLY: "can't be written by language models, which are held to legal answers",
}


def same_episodes(rows: Sequence[ScoreView]) -> int | None:
    """How many episodes each of the agents has, where nobody has more or misses one."""
    counts = {count for row in rows for count in (row["episodes"], row["planned"])}
    return counts.pop() if len(counts) == 1 else None


AGENT: Column[ScoreView] = Column("agent", "agent", agent_figure, "ascending")
"""The name alone, for tables beside that of the scores, which has the notes on it."""

SCORES: tuple[Column[ScoreView], ...] = (
    Column("rank", "rank", rank_figure, "ascending", "=: can't be told apart from the best agent of this rank"),
    Column("agent", "agent", _scored_agent, "ascending"),
    Column(
        "episodes",
        "episodes",
        lambda row: Figure(
            f"{row['episodes']}" + (f" of {row['planned']}" if row["planned"] > row["episodes"] else ""),
            row["episodes"],
        ),
        needed=lambda rows: same_episodes(rows) is None,
    ),
    Column(
        "mean_return",
        "mean return",
        lambda row: estimate_figure(row["mean_return"]),
        bar=True,
        term="Return",
        meaning="the sum of an episode's rewards; the mean is over episodes",
    ),
    Column(
        "luck_free_return",
        "luck-free return",
        lambda row: estimate_figure(row["luck_free_return"]),
        explain="the mean return with luck taken out",
        wide_only=True,
        needed=_without_luck,
        term="Luck-free return",
        meaning="the mean return with the luck of the game's own draws taken out; ranks go by it",
    ),
    Column(
        "normalized",
        "normalised",
        lambda row: estimate_figure(row["normalized"], ".2f"),
        explain=f"{ENDS}; of the luck-free return where there is one",
        needed=lambda rows: any(row["normalized"] for row in rows),
        term="Normalised",
        meaning=f"{ENDS}; both on the same seeds",
    ),
    _luck_column(
        "beta",
        "beta",
        lambda luck: luck["beta"],
        ".2f",
        "how much of the luck is taken out: the mean coefficient",
        term="Beta, SD ratio",
        meaning="how much of the luck is taken out, and how much narrower the returns get by it",
    ),
    _luck_column(
        "sd_ratio",
        "SD ratio",
        lambda luck: luck["sd_ratio"],
        ".2f",
        "standard deviation of luck-free over plain returns",
    ),
    _luck_column(
        "z",
        "luck z",
        lambda luck: luck["z"],
        "+.1f",
        "all luck, in standard deviations of honest play",
        term="Luck z",
        meaning="an agent's luck in standard deviations of honest play",
    ),
    Column(
        "success",
        "success",
        lambda row: estimate_figure(row["success_rate"], ".0%"),
        term="Success",
        meaning="share of episodes in which the player {aim}",
    ),
    Column(
        "invalid",
        "invalid",
        lambda row: estimate_figure(row["invalid_rate"], ".0%")._replace(note=_counts(row["invalid_reasons"])),
        "ascending",
        "responses that named no legal action",
        term="Invalid",
        meaning="share of responses that named no legal action; {protocol}",
    ),
    Column(
        "length",
        "length",
        lambda row: estimate_figure(row["length"], ".1f"),
        "ascending",
        "rounds",
        optional=True,
        term="Length",
        meaning="rounds until the end; in a round everyone whose turn it is acts once",
    ),
    Column(
        "tokens",
        "tokens",
        lambda row: estimate_figure(row["tokens"], ".0f"),
        "ascending",
        "per episode",
        optional=True,
        needed=lambda rows: any(row["tokens"] and row["tokens"]["value"] for row in rows),
        term="Tokens",
        meaning="of prompts and responses, per episode",
    ),
    Column(
        "cost",
        "cost USD",
        lambda row: Figure("?" if row["cost"] is None else f"{row['cost']:.4f}", row["cost"]),
        "ascending",
        "over all episodes; ? where the model has no price",
        optional=True,
        needed=lambda rows: any(row["cost"] for row in rows),
        term="Cost",
        meaning="US dollars over all episodes",
    ),
    Column(
        "unscored",
        "unscored",
        lambda row: Figure(str(row["unscored"]), row["unscored"], note=_counts(row["errors"])),
        "ascending",
        "episodes that ended in an error: neither won nor lost",
        optional=True,
        needed=lambda rows: any(row["unscored"] for row in rows),
    ),
)


def _invalid_share(row: OverallView) -> Figure:
    share = row["invalid_rate"]
    return Figure() if share is None else Figure(f"{share:.0%}", share)


OVERALL: tuple[Column[OverallView], ...] = (
    Column("rank", "rank", rank_figure, "ascending", "=: can't be told apart from the best agent of this rank"),
    Column("agent", "agent", _ranked_agent, "ascending"),
    Column(
        "normalized",
        "overall score",
        lambda row: estimate_figure(row["normalized"]),
        explain=f"mean over games of normalised scores, those below 0 counted as 0; {ENDS}",
        bar=True,
    ),
    Column(
        "success",
        "success",
        lambda row: estimate_figure(row["success"], ".0%"),
        explain="mean over the same games, as far as they know success",
        needed=lambda rows: any(row["success"] for row in rows),
    ),
    Column(
        "invalid",
        "invalid",
        _invalid_share,
        "ascending",
        "responses that named no legal action, of all on this board",
        needed=lambda rows: any(row["invalid_rate"] is not None for row in rows),
    ),
)

RATINGS: tuple[Column[RatingView], ...] = (
    Column("agent", "agent", agent_figure, "ascending"),
    Column(
        "rating",
        "rating (Elo)",
        lambda row: estimate_figure(row["rating"], "+.0f"),
        explain="Bradley-Terry, Elo points, mean 0",
        bar=True,
    ),
    Column("games", "games", lambda row: Figure(str(row["games"]), row["games"])),
    Column("wins", "wins", lambda row: Figure(str(row["wins"]), row["wins"])),
    Column("draws", "draws", lambda row: Figure(str(row["draws"]), row["draws"])),
    Column("losses", "losses", lambda row: Figure(str(row["losses"]), row["losses"])),
)


def further_columns(rows: Sequence[ScoreView]) -> list[tuple[str, str, list[Column[ScoreView]]]]:
    """What tables these rows need beside the scores, as (key, caption, columns after the agent's).

    A column for every metric that they have, and for every seat of a game for several players: the mean return there.
    """
    tables = [
        ("metrics", "more figures", _named_columns("metrics", "{}", rows)),
        ("seats", "mean return by seat", _named_columns("seats", "as {}", rows)),
    ]
    return [table for table in tables if table[2]]


def _named_columns(part: Literal["metrics", "seats"], title: str, rows: Sequence[ScoreView]) -> list[Column[ScoreView]]:
    def column(name: str) -> Column[ScoreView]:
        # which direction is the better one, only the game's author knows
        return Column(
            f"{part}-{name}",
            title.format(name.replace("_", " ") if part == "metrics" else name),
            lambda row: estimate_figure(row[part].get(name)),
        )

    return [column(name) for name in dict.fromkeys(name for row in rows for name in row[part])]


def suite_columns(suites: Sequence[SuiteView]) -> list[Column[OverallView]]:
    """A column for every suite: the overall score over its scenarios."""

    def column(suite: SuiteView) -> Column[OverallView]:
        return Column(
            f"suite-{suite['name']}",
            suite["name"],
            lambda row: estimate_figure(suite["normalized"].get(row["agent"]), ".2f"),
            explain=suite["about"],
        )

    return [column(suite) for suite in suites]


def shown_suites(document: Mapping[str, Any]) -> list[SuiteView]:
    """The suites that tell more than the overall score does: none where that is all there is."""
    suites: list[SuiteView] = document["suites"]
    return suites if any(suite["scenarios"] != document["overall_scenarios"] for suite in suites) else []


SUITE_NOTE = "overall scores of each suite alone; empty where an agent lacks one of the suite's scenarios"


def suite_notes(suites: Sequence[SuiteView]) -> list[str]:
    """What each suite's score is over."""
    return [SUITE_NOTE, *(f"{suite['name']}: over {listed(suite['scenarios'])}" for suite in suites)]


def luck_note(rows: Sequence[ScoreView]) -> str:
    """Which returns the normalised scores and ranks of a scenario go by, where luck was taken out of some."""
    measured = next((row["luck"] for row in rows if row["luck"]), None)
    if measured is None:
        return ""
    if not _without_luck(rows):
        return (
            "normalised scores and ranks are of plain returns; controlled_return in the data (--json) has luck "
            f"taken out, as measured by {measured['values']}"
        )
    plain = [row["agent"] for row in rows if row["normalized_by"] == "plain"]
    but = f" (plain for {', '.join(plain)})" if plain else ""
    return f"normalised scores and ranks are of luck-free returns{but}; luck is measured by {measured['values']}"


def score_notes(rows: Sequence[ScoreView]) -> list[str]:
    """What a reader must know of the scores of one scenario."""
    kind = next((row["reference"]["kind"] for row in rows if row["reference"]["kind"]), None)
    return list(filter(None, (luck_note(rows), above_one([row["normalized"] for row in rows], kind), blind_note(rows))))


def overall_notes(rows: Sequence[OverallView], scores: Sequence[ScoreView], scenarios: Sequence[str]) -> list[str]:
    """What a reader must know of the overall scores."""
    notes = (scale_sentence(scores, scenarios), above_one([row["normalized"] for row in rows]), blind_note(rows))
    return list(filter(None, notes))


def rating_notes(rows: Sequence[RatingView]) -> list[str]:
    """What the ratings of one scenario can't say: agents without a rating, several scales, circles, a single game."""
    notes = []
    alone = [row["agent"] for row in rows if row["rating"] is None]
    if alone:
        notes.append(f"no finite rating: {', '.join(alone)} won all games, or lost all, against each opponent")
    groups: dict[int, list[str]] = {}
    for row in rows:
        if row["rating"] is not None:
            groups.setdefault(row["group"], []).append(row["agent"])
    if len(groups) > 1:
        scales = "; ".join(", ".join(names) for names in groups.values())
        notes.append(f"ratings are comparable only within each of these groups: {scales}")
    circle = [row["agent"] for row in rows if row["in_cycle"]]
    if circle:
        notes.append(f"{', '.join(circle)} beat each other in a circle: no order explains their results")
    if not all(row["opposed"] for row in rows):
        notes.append("a rating says who got more than the others at the table; the mean return says who did well")
    single = [row["agent"] for row in rows if row["games"] == 1]
    if single:
        notes.append(f"a single game: {', '.join(single)}")
    return notes
