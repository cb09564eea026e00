"""The tables beside those of scores, for terminal, Markdown and page alike.

What the text does to a score: its twins (docs/twins.md) and its wordings (docs/wordings.md); and how reliable a player
is (docs/benchmark.md).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmark.score.comparing.protocols import label
from benchmark.score.document import (
    EstimateView,
    LadderView,
    ProtocolView,
    ReliabilityView,
    SkillView,
    TwinGapView,
    VarianceView,
    WordingView,
)
from benchmark.score.move_losses import KINDS
from benchmark.show.tables.figures import Column, Figure, agent_figure, estimate_figure, number

_TWIN_NOTE = (
    "a gap above 0 is what was memorised or helped by the text that everybody knows; intervals are over seeds, for "
    "these twins"
)


def _by_changed_moves(row: TwinGapView) -> Figure:
    shown = estimate_figure(row["by_changed_moves"])
    share = row["moves_changed"]
    return shown if share is None else shown._replace(interval=f"{shown.interval} in {share:.0%}".strip())


_TWIN_GAPS: tuple[Column[TwinGapView], ...] = (
    Column("agent", "agent", lambda row: Figure(row["agent"]), "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"] or "all of them"), "ascending"),
    Column(
        "gap",
        "twin gap",
        lambda row: estimate_figure(row["gap"]),
        explain="the score in the game less the mean of those in its twins, paired by seed",
        bar=True,
    ),
    Column(
        "by_changed_moves",
        "by changed moves",
        _by_changed_moves,
        explain="lost where the story changed the move, in states of the game's own episode of the seed",
        needed=lambda rows: any(row["by_changed_moves"] is not None for row in rows),
    ),
    Column("unit", "of", lambda row: Figure(row["unit"]), "ascending", wide_only=True),
    Column("twins", "twins", lambda row: Figure(str(row["twins"]))),
    Column("pairs", "seeds", lambda row: Figure(str(row["pairs"]))),
)

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

_WORDING_NOTE = (
    "mean returns; the first interval is for these wordings, the second for wordings like these; the spread is the "
    "standard deviation between wordings; one more wording lowers the variance of the mean as much as the episodes "
    "that it is worth; and the last column says what would halve the second interval"
)


def _by_wording(row: WordingView) -> Figure:
    note = "; ".join(
        f"better than {flip['agent']} in {', '.join(flip['better_in'])}, and worse in {', '.join(flip['worse_in'])}"
        for flip in row["flips"]
    )
    return Figure(", ".join(f"{name} {number(mean, '.2f')}" for name, mean in row["means"].items()), note=note)


def _to_halve(row: WordingView) -> Figure:
    if row["episodes_for_it"] is not None:
        return Figure(f"{row['episodes_for_it']} episodes")
    return Figure("" if row["wordings_for_it"] is None else f"{row['wordings_for_it']} wordings")


def _worth(row: WordingView) -> Figure:
    return Figure("more than any" if row["wording_worth"] is None else f"{row['wording_worth']} episodes")


_WORDINGS: tuple[Column[WordingView], ...] = (
    Column("agent", "agent", lambda row: Figure(row["agent"]), "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"]), "ascending"),
    Column("over_starts", "over starts", lambda row: estimate_figure(row["over_starts"])),
    Column("over_wordings", "over starts and wordings", lambda row: estimate_figure(row["over_wordings"])),
    Column("spread", "spread", lambda row: Figure(number(row["spread"]))),
    Column("means", "by wording", _by_wording, wide_only=True),
    Column("worth", "one more is worth", _worth, wide_only=True),
    Column("to_halve", "to halve it", _to_halve, wide_only=True),
)


_VARIANCE_NOTE = (
    "of one episode's return, with the share of all; parts are unbiased, so that one may be below 0; intervals are "
    "over seeds, for these wordings"
)

_VARIANCE_PARTS = ("wording", "starts", "chance", "sampling")


def _variance_column(key: str) -> Column[VarianceView]:
    def figure(row: VarianceView) -> Figure:
        part: EstimateView | None = row[key]  # type: ignore[literal-required]
        shown = estimate_figure(part, ".3g")
        every = [row["wording"], row["chance"], row["starts_and_sampling"]]
        total = sum(one["value"] for one in every if one is not None)
        share = f" {part['value'] / total:.0%}" if part is not None and total > 0 else ""
        return shown._replace(interval=f"{shown.interval}{share}".strip())

    def needed(rows: Sequence[VarianceView]) -> bool:
        return key in _VARIANCE_PARTS or any(row["sampling"] is None for row in rows)

    return Column(key, key.replace("_", " "), figure, "ascending", needed=needed)


_VARIANCE: tuple[Column[VarianceView], ...] = (
    Column("agent", "agent", lambda row: Figure(row["agent"]), "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"]), "ascending"),
    *map(_variance_column, (*_VARIANCE_PARTS, "starts_and_sampling")),
    Column("seeds", "seeds", lambda row: Figure(str(row["seeds"])), wide_only=True),
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


class TextTable(NamedTuple):
    """A table beside the scores, whose cells are texts in every kind of output."""

    key: str  # of its rows in a document
    title: str
    columns: Sequence[Column[Any]]
    notes: tuple[str, ...]
    rows: Sequence[Any] = ()


_TABLES = (
    TextTable("twin_gaps", "twin gap", _TWIN_GAPS, (_TWIN_NOTE,)),
    TextTable("ladders", "levels", _LADDERS, (_LADDER_NOTE,)),
    TextTable("wordings", "wordings", _WORDINGS, (_WORDING_NOTE,)),
    TextTable("variance", "where the variance comes from", _VARIANCE, (_VARIANCE_NOTE,)),
    TextTable("skill", "which skill", _SKILL, (_SKILL_NOTE,)),
    TextTable("protocols", "by protocol", _PROTOCOLS, (_PROTOCOL_NOTE,)),
    TextTable("reliability", "reliability", _RELIABILITY, (_RELIABILITY_NOTE,)),
)


def text_tables(document: Mapping[str, Any]) -> list[TextTable]:
    """The tables for which a document has rows; notes say what some of these lack, and how to get it."""
    found = [table._replace(rows=rows) for table in _TABLES if (rows := document.get(table.key))]
    return [
        table._replace(
            notes=(*table.notes, *dict.fromkeys(lack for row in table.rows for lack in row.get("missing", ())))
        )
        for table in found
    ]
