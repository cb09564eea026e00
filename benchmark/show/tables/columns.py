"""The columns of the leaderboard's tables, said once: terminal, Markdown and page show the same figures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from benchmark.score.document import LuckView, OverallView, RatingView, ScoreView, SuiteView
from benchmark.show.tables.figures import Column, Figure, agent_figure, estimate_figure, listed, number, rank_figure
from benchmark.show.tables.notes import agent_note, without_luck
from benchmark.show.tables.scale import ENDS

OVER = "intervals over starts"
"""What the intervals of scores hold over, for the headings of their tables: those over wordings too are in another."""


def _scored_agent(row: ScoreView) -> Figure:
    return agent_figure(row)._replace(note=agent_note(row))


def _ranked_agent(row: OverallView) -> Figure:
    note = f"not ranked, lacks {listed(row['lacks'])}" if row["lacks"] else ""
    return Figure(row["agent"], row["agent"].casefold(), note=note)


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

    return Column(key, title, figure, explain=explain, optional=True, needed=without_luck, **terms)


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
        needed=without_luck,
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
