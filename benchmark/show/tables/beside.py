"""The tables beside those of scores: how their rows are found, and their columns in terminal, Markdown and page.

An installed package adds a :class:`BoardTable` by an entry point of the group ``textbench.tables``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmark.errors import UsageError
from benchmark.score.beside.reliability import reliability_rows
from benchmark.score.beside.skill import skill_rows
from benchmark.score.comparing.by_protocol import protocol_rows
from benchmark.score.comparing.protocols import label
from benchmark.score.document import EstimateView, LadderView, ProtocolView, ReliabilityView, ScoreView, SkillView
from benchmark.score.ladders.rows import ladder_rows
from benchmark.score.move_losses import KINDS
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.show.tables.figures import Column, Figure, agent_figure, estimate_figure, number
from textgames.plugins import loaded

ENTRY_POINT_GROUP = "textbench.tables"


class Scored(NamedTuple):
    """What the rows of a table beside the scores can be made of."""

    results: ResultColumns
    references: References
    agents: Sequence[str]  # best first
    scores: Sequence[ScoreView]


class BoardTable(NamedTuple):
    """A table beside the scores, whose cells are texts in every kind of output."""

    key: str  # of its rows in a document
    title: str
    columns: Sequence[Column[Any]]
    notes: tuple[str, ...]
    find: Callable[[Scored], Sequence[Any]]  # returns its rows, in a form that can be JSON
    brief: str = ""  # a sentence for the few lines that a run ends in, which have the next columns
    figures: Callable[[Sequence[Any]], Mapping[str, Figure]] = lambda rows: {}  # {title: figure} of one agent's rows
    rows: Sequence[Any] = ()


_LADDER_NOTE = (
    "the level at which half is kept of what best play gets above play that doesn't read; the share that is kept at "
    "each level has few episodes behind it where the level is far from that"
)


def level_figure(row: LadderView) -> Figure:
    """A level with its interval; ``<1`` and ``>10`` beyond the levels that were played."""
    value, low, high = (row["level"][key] for key in ("value", "low", "high"))
    if row["beyond"] == "below":
        return Figure(f"<{row['first']}", value, "" if high is None else f"at most {number(high, '.1f')}")
    if row["beyond"] == "above":
        return Figure(f">{row['last']}", value, "" if low is None else f"at least {number(low, '.1f')}")
    return estimate_figure(row["level"], ".1f")


_LADDERS: tuple[Column[LadderView], ...] = (
    Column("agent", "agent", agent_figure, "ascending"),
    Column("scenario", "ladder", lambda row: Figure(row["scenario"], row["scenario"]), "ascending"),
    Column("level", "level", level_figure),
    Column("spread", "spread", lambda row: Figure(number(row["spread"], ".1f"), row["spread"]), wide_only=True),
    Column("episodes", "episodes", lambda row: Figure(f"{row['episodes']:,}", row["episodes"])),
    Column(
        "rungs",
        "kept at each level",
        lambda row: Figure(" ".join(f"{one['level']}:{number(one['kept']['value'], '.2f')}" for one in row["rungs"])),
        wide_only=True,
    ),
)

_RELIABILITY_NOTE = (
    "how often an agent answers as it should, whatever it then plays; forfeited, timed out and failed are shares of "
    "episodes, the others of responses; what has no column here never happened"
)


def _happened(key: str) -> Callable[[Sequence[ReliabilityView]], bool]:
    def happened(rows: Sequence[ReliabilityView]) -> bool:
        shares: list[EstimateView | None] = [row[key] for row in rows]  # type: ignore[literal-required]
        return any(share is not None and share["value"] > 0 for share in shares)

    return happened


def _share_column(key: str, explain: str, *, always: bool = False) -> Column[ReliabilityView]:
    return Column(
        key,
        key.replace("_", " "),
        lambda row: estimate_figure(row[key], ".1%"),  # type: ignore[literal-required]
        "ascending",
        explain,
        needed=(lambda rows: True) if always else _happened(key),
    )


_RELIABILITY: tuple[Column[ReliabilityView], ...] = (
    Column("agent", "agent", agent_figure, "ascending"),
    Column("responses", "responses", lambda row: Figure(f"{row['responses']:,}", row["responses"])),
    _share_column("invalid", "responses that named no legal action", always=True),
    _share_column("cut_off", "responses that ran out of tokens"),
    _share_column("refused", "responses that are a refusal, as the server says"),
    _share_column("forfeited", "episodes that were lost by a response that couldn't be read"),
    _share_column("timed_out", "episodes that are unscored because a server took too long"),
    _share_column("failed", "episodes that are unscored for another error"),
)


_PROTOCOL_NOTE = (
    "the same agents on the same seeds, by what an unreadable response leads to; the last interval is that of the mean "
    "difference to the first of an agent's protocols, seed by seed; returns are luck-free where there are such"
)

_PROTOCOLS: tuple[Column[ProtocolView], ...] = (
    Column("agent", "agent", agent_figure, "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"], row["scenario"]), "ascending"),
    Column("protocol", "protocol", lambda row: Figure(label(row["protocol"], row["moves"]) or row["protocol"])),
    Column("mean", "mean return", lambda row: estimate_figure(row["mean"])),
    Column("invalid_rate", "invalid", lambda row: estimate_figure(row["invalid_rate"], ".0%"), "ascending"),
    Column(
        "difference",
        "less the first",
        lambda row: estimate_figure(row["difference"], "+.3f"),
        explain="the mean paired difference to the agent's first protocol in this scenario",
    ),
    Column("pairs", "seeds", lambda row: Figure(str(row["pairs"]), row["pairs"]), wide_only=True),
)


_SKILL_NOTE = (
    "where values are exact: which share of the value lost was lost at decisions of a kind, and in which share of the "
    "decisions; kinds overlap, and who lost nothing isn't listed"
)


def _kind_column(key: str, *, wide_only: bool = False) -> Column[SkillView]:
    def figure(row: SkillView) -> Figure:
        if (one := row["kinds"].get(key)) is None or not one["decisions"]:
            return Figure()
        shown = estimate_figure(one["lost"], ".0%")
        return shown._replace(interval=f"{shown.interval} in {one['decisions']:.0%}".strip())

    return Column(f"kind-{key}", KINDS[key], figure, wide_only=wide_only)


_SKILL: tuple[Column[SkillView], ...] = (
    Column("agent", "agent", agent_figure, "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"], row["scenario"]), "ascending"),
    Column("lost", "value lost", lambda row: estimate_figure(row["lost"]), "ascending", "per episode"),
    *(_kind_column(key, wide_only=key in ("first", "last", "unread")) for key in KINDS),
)


_TABLES = (
    BoardTable(
        "ladders",
        "levels",
        _LADDERS,
        (_LADDER_NOTE,),
        lambda scored: ladder_rows(scored.results, scored.references),
        "The level is where half of what is between 0 and 1 is kept, with 95% intervals.",
        lambda rows: {f"{row['scenario']} level": level_figure(row) for row in rows},
    ),
    BoardTable(
        "skill", "which skill", _SKILL, (_SKILL_NOTE,), lambda scored: skill_rows(scored.results, scored.agents)
    ),
    BoardTable(
        "protocols",
        "by protocol",
        _PROTOCOLS,
        (_PROTOCOL_NOTE,),
        lambda scored: protocol_rows(scored.results, scored.scores),
        "The protocols side by side: add --stats.",
    ),
    BoardTable(
        "reliability",
        "reliability",
        _RELIABILITY,
        (_RELIABILITY_NOTE,),
        lambda scored: reliability_rows(scored.results, scored.agents),
    ),
)


def board_tables() -> tuple[BoardTable, ...]:
    """Return the tables beside the scores, those of installed packages last.

    Raises:
        UsageError: an installed package's table can't be imported.
    """
    try:
        return (*_TABLES, *loaded(ENTRY_POINT_GROUP).values())
    except ImportError as error:
        raise UsageError(f"no table can be shown beside the scores: {error}") from error


def found_tables(document: Mapping[str, Any]) -> list[BoardTable]:
    """Return the tables for which a document has rows; notes say what some of these lack, and how to get it."""
    found = [table._replace(rows=rows) for table in board_tables() if (rows := document.get(table.key))]
    return [
        table._replace(
            notes=(*table.notes, *dict.fromkeys(lack for row in table.rows for lack in row.get("missing", ())))
        )
        for table in found
    ]
