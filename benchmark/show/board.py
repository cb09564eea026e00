"""The tables of a board and of a comparison, each declared once: terminal, Markdown and page show the same figures.

An installed package adds a table beside the scores by an entry point of the group ``textbench.tables``: a
:class:`~benchmark.show.table.Table` that finds its rows in :class:`~benchmark.show.table.Scored`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from benchmark.score.beside import ladder_rows, protocol_rows, reliability_rows, size_rows, skill_rows
from benchmark.score.differences import LEVEL, TIE
from benchmark.score.document import (
    ComparisonView,
    EstimateView,
    LadderView,
    OverallComparisonView,
    OverallView,
    RatingView,
    ReadingView,
    SampleView,
    ScoreView,
    SkillView,
    SuiteView,
)
from benchmark.score.move_losses import KINDS, LIMIT
from benchmark.score.protocols import label
from benchmark.score.readings import reading_rows
from benchmark.score.samples import sample_rows
from benchmark.show.notes import (
    ENDS,
    SUITE_NOTE,
    above_one,
    agent_note,
    blind_note,
    by_suite,
    further_protocols,
    listed,
    luck_note,
    rating_notes,
    scale_ends,
    scale_sentence,
    source_notes,
    without_luck,
)
from benchmark.show.table import (
    Column,
    Elsewhere,
    Figure,
    Rows,
    Table,
    agent_figure,
    estimate,
    estimate_figure,
    figure_of,
    number,
    value,
)
from textgames.plugins import loaded
from textgames.scenarios import ABOUT_SUITES

ENTRY_POINT_GROUP = "textbench.tables"
LARGE = 8  # a board of more scenarios is shown by suite, in one table for each
MOST_FURTHER = 5  # columns of metrics that stand in one table of a terminal
OVER = "intervals over starts"  # in headings, as those over wordings too are in another table


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in ordered if count)


def _luck_column(key: str, title: str, form: str, explain: str) -> Column[ScoreView]:
    """Make a column of a figure on the luck of an agent, which says nothing of its rank: no order of it is best."""

    def figure(row: ScoreView) -> Figure:
        return figure_of(row["luck"] and row["luck"][key], form)  # type: ignore[literal-required]

    return Column(key, title, figure, explain=explain, optional=True, needed=without_luck)


def same_episodes(rows: Rows) -> int | None:
    """Return how many episodes each of the agents has, if none has more or misses one."""
    counts = {count for row in rows for count in (row["episodes"], row["planned"])}
    return counts.pop() if len(counts) == 1 else None


def _any(key: str) -> Callable[[Rows], bool]:
    return lambda rows: any(row[key] for row in rows)


AGENT: Column[Any] = Column("agent", "agent", agent_figure, "ascending", left=True)
"""The name alone; the tables of scores have notes on it."""
SCENARIO: Column[Any] = value("scenario", first="ascending")
RANK: Column[Any] = Column(
    "rank",
    "rank",
    lambda row: Figure("" if row["rank"] is None else f"{row['rank']}{'=' if row['tied'] else ''}", row["rank"]),
    "ascending",
    "=: can't be told apart from the best agent of this rank",
)

COST: Column[Any] = Column(
    "cost",
    "cost USD",
    lambda row: Figure("?" if row["cost"] is None else f"{row['cost']:.4f}", row["cost"]),
    "ascending",
    "over all episodes; ? if the model has no price",
    optional=True,
    needed=_any("cost"),
)

CPU: Column[Any] = Column(
    "cpu",
    "CPU s",
    lambda row: figure_of(row["cpu_seconds"]),
    "ascending",
    "seconds of a core per episode, of an agent that runs in the run's own process",
    optional=True,
    needed=_any("cpu_seconds"),
)

SCORES: tuple[Column[ScoreView], ...] = (
    RANK,
    replace(AGENT, figure=lambda row: agent_figure(row)._replace(note=agent_note(row))),
    Column(
        "episodes",
        "episodes",
        lambda row: Figure(
            f"{row['episodes']}" + (f" of {row['planned']}" if row["planned"] > row["episodes"] else ""),
            row["episodes"],
        ),
        needed=lambda rows: same_episodes(rows) is None,
    ),
    estimate("mean_return", "mean return", explain="the sum of an episode's rewards", bar=True),
    estimate(
        "luck_free_return",
        "luck-free return",
        explain="the mean return with luck taken out",
        wide_only=True,
        needed=without_luck,
    ),
    estimate(
        "normalized",
        "normalised",
        ".2f",
        explain=f"{ENDS}; of the luck-free return where there is one",
        needed=_any("normalized"),
    ),
    _luck_column("beta", "beta", ".2f", "how much of the luck is taken out: the mean coefficient"),
    _luck_column("sd_ratio", "SD ratio", ".2f", "standard deviation of luck-free over plain returns"),
    _luck_column("z", "luck z", "+.1f", "all luck, in standard deviations of honest play"),
    Column("success", "success", lambda row: estimate_figure(row["success_rate"], ".0%"), explain="share of episodes"),
    Column(
        "invalid",
        "invalid",
        lambda row: estimate_figure(row["invalid_rate"], ".0%")._replace(note=_counts(row["invalid_reasons"])),
        "ascending",
        "responses that named no legal action",
    ),
    estimate(
        "length",
        "length",
        ".1f",
        "ascending",
        explain="rounds, in each of which all whose turn it is act",
        optional=True,
    ),
    estimate(
        "tokens",
        "tokens",
        ".0f",
        "ascending",
        explain="of prompts and responses, per episode",
        optional=True,
        needed=lambda rows: any(row["tokens"] and row["tokens"]["value"] for row in rows),
    ),
    COST,
    CPU,
    Column(
        "unscored",
        "unscored",
        lambda row: Figure(str(row["unscored"]), row["unscored"], note=_counts(row["errors"])),
        "ascending",
        "episodes that ended in an error: neither won nor lost",
        optional=True,
        needed=_any("unscored"),
    ),
)


OVERALL: tuple[Column[OverallView], ...] = (
    RANK,
    replace(
        AGENT,
        figure=lambda row: agent_figure(row)._replace(
            note=f"not ranked, lacks {listed(row['lacks'])}" if row["lacks"] else ""
        ),
    ),
    estimate(
        "normalized",
        "overall score",
        explain=f"mean over games of normalised scores, those below 0 counted as 0; {ENDS}",
        bar=True,
    ),
    estimate(
        "success",
        "success",
        ".0%",
        explain="mean over the same games, as far as they know success",
        needed=_any("success"),
    ),
    Column(
        "invalid",
        "invalid",
        lambda row: figure_of(row["invalid_rate"], ".0%"),
        "ascending",
        "responses that named no legal action, of all on this board",
        needed=lambda rows: any(row["invalid_rate"] is not None for row in rows),
    ),
)

RATINGS: tuple[Column[RatingView], ...] = (
    AGENT,
    estimate("rating", "rating (Elo)", "+.0f", explain="Bradley-Terry, Elo points, mean 0", bar=True),
    *map(value, ("games", "wins", "draws", "losses")),
)


def _scale_note(rows: Sequence[ScoreView]) -> str:
    ends = [f"{name} {number(value)}, {source}" for name, value, source in scale_ends(rows)]
    return "0 = {}; 1 = {}".format(*ends) if len(ends) == 2 and _any("normalized")(rows) else ""


def score_table(scenario: str, rows: Sequence[ScoreView]) -> Table:
    """Make the table of one scenario's scores."""
    count, scale = same_episodes(rows), _scale_note(rows)
    kind = next((row["reference"]["kind"] for row in rows if row["reference"]["kind"]), None)
    counted = scenario if count is None else f"{scenario}, {count} episode{'' if count == 1 else 's'}"
    return Table(
        scenario,
        f"{counted}; {OVER}",
        SCORES,
        [
            Elsewhere(f"normalised: {scale}" if scale else ""),
            *filter(None, (luck_note(rows), above_one([row["normalized"] for row in rows], kind), blind_note(rows))),
            *map(Elsewhere, further_protocols(rows)),
        ],
        rows=rows,
        caption=f"{scenario}: scores, {OVER}",
        sorted_by="rank",
        marks=[value for _, value, _ in scale_ends(rows)],
    )


def rating_table(scenario: str, rows: Sequence[RatingView]) -> Table:
    """Make the table of one scenario's ratings."""
    return Table(
        f"{scenario}-ratings",
        f"{scenario}, head to head",
        RATINGS,
        rating_notes(rows),
        rows=rows,
        caption=f"{scenario}: ratings, head to head",
        sorted_by="rating",
    )


def further_tables(scenario: str, rows: Sequence[ScoreView]) -> list[Table]:
    """Make the tables of a scenario's metrics and, in a game for several players, of its mean returns by seat."""

    def column(part: str, name: str) -> Column[ScoreView]:
        # which direction is the better one, only the game's author knows
        title = name.replace("_", " ") if part == "metrics" else f"as {name}"
        return Column(f"{part}-{name}", title, lambda row: estimate_figure(row[part].get(name)), is_name=True)

    tables = []
    for part, what in (("metrics", "more figures"), ("seats", "mean return by seat")):
        columns = [column(part, name) for name in dict.fromkeys(name for row in rows for name in row[part])]  # type: ignore[literal-required]
        if columns:
            title, caption = f"{scenario}, {what}", f"{scenario}: {what}"
            tables.append(Table(f"{scenario}-{part}", title, [AGENT, *columns], rows=rows, caption=caption))
    return tables


def overall_table(document: Mapping[str, Any]) -> Table:
    """Make the table of the overall scores."""
    rows, names = document["overall"], document["overall_scenarios"]
    about = (
        f"mean over the games of {listed(names)}, whose scores count as 0 below 0; a game's scenarios share its weight"
    )
    notes = (
        scale_sentence(document["scores"], names),
        above_one([row["normalized"] for row in rows]),
        blind_note(rows),
    )
    return Table(
        "overall",
        "overall",
        OVERALL,
        [Elsewhere(about), *filter(None, notes)],
        rows=rows,
        caption=f"All agents on the same scenarios, {OVER}",
        sorted_by="rank",
        marks=(0.0, 1.0),
    )


def suite_rating(suite: SuiteView) -> tuple[Mapping[str, EstimateView | None], str]:
    """Return the ratings of a suite by agent, and the sentence on what they are of or why there are none."""
    if why := suite.get("unrated"):
        return {}, f"{suite['name']} has no rating: {why}"
    ratings = suite.get("ratings", {})
    told = f"{suite['name']} (Elo): one Bradley-Terry rating over its games of several agents, which weigh the same"
    return ratings, told if ratings else ""


def suite_table(document: Mapping[str, Any]) -> Table | None:
    """Make the table of overall scores of whole suites; ``None`` if these say no more than the overall score."""
    suites: list[SuiteView] = document["suites"]
    if all(suite["scenarios"] == document["overall_scenarios"] and not suite_rating(suite)[1] for suite in suites):
        return None

    def column(suite: SuiteView) -> Column[OverallView]:
        ratings, _ = suite_rating(suite)
        return Column(
            f"suite-{suite['name']}",
            f"{suite['name']} (Elo)" if ratings else suite["name"],
            lambda row: estimate_figure(
                (ratings or suite["normalized"]).get(row["agent"]), "+.0f" if ratings else ".2f"
            ),
            explain=suite["about"],
            is_name=True,
        )

    columns = [AGENT, *map(column, suites), OVERALL[-1]]
    return Table(
        "suites",
        "overall by suite",
        columns,
        [SUITE_NOTE, *filter(None, (suite_rating(suite)[1] for suite in suites))],
        rows=document["overall"],
        caption="All agents, suite by suite",
        details=[
            f"{suite['name']}: over {listed(suite['scenarios'])}" for suite in suites if not suite_rating(suite)[1]
        ],
        sorted_by=columns[1].key,
    )


def leaderboard_tables(document: Mapping[str, Any], *, overall_first: bool = False) -> list[Table]:
    """Make all tables of a document; the last one that ranks agents says what a shared rank means."""
    scores, ratings = _by_scenario(document["scores"]), _by_scenario(document["ratings"])
    if len(scores) > LARGE:
        tables = list(_tables_of_suites(scores, ratings))
    else:
        tables = [*map(score_table, scores, scores.values()), *map(rating_table, ratings, ratings.values())]
        further = [table for one in scores.items() for table in further_tables(*one)]
        tables += [
            replace(table, columns=[table.columns[0], *table.columns[start : start + MOST_FURTHER]])
            for table in further  # a terminal has room for a part of a wide one
            for start in range(1, len(table.columns), MOST_FURTHER)
        ]
    tables += found_tables(document)
    overalls = []
    if suites := suite_table(document):
        known = {
            name
            for one in document["suites"]
            for name, figure in (*one["normalized"].items(), *suite_rating(one)[0].items())
            if figure
        }
        overalls.append(replace(suites, rows=[row for row in suites.rows if row["agent"] in known or not known]))
    if len(document["overall_scenarios"]) > 1 and any(row["normalized"] for row in document["overall"]):
        overalls.append(overall_table(document))
    tables = [*overalls[::-1], *tables] if overall_first else [*tables, *overalls]
    tables[0] = replace(tables[0], last=source_notes(document))
    if any(row["tied"] for row in (*document["scores"], *document["overall"])):
        note = (
            "=: can't be told apart from the best agent of this rank: intervals meet, and the paired test finds "
            "nothing at level 0.05 after Bonferroni's correction for the "
            f"{document['comparisons_family']} comparisons that this board allows"
        )
        last = max(place for place, table in enumerate(tables) if "rank" in table.titles)
        tables[last] = replace(tables[last], last=(*tables[last].last, note))
    return tables


def _by_scenario(rows: Rows) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["scenario"], []).append(row)
    return found


def _tables_of_suites(scores: Mapping[str, list[Any]], ratings: Mapping[str, list[Any]]) -> Iterator[Table]:
    """Make the tables of a large board: those of all scenarios of a suite are one."""

    def all_metrics(row: ScoreView) -> Figure:
        named = ((name.replace("_", " "), one["value"]) for name, one in row["metrics"].items())
        return Figure(", ".join(f"{name} {number(value)}" for name, value in named))

    metrics: Column[ScoreView] = Column("metrics", "figures", all_metrics, left=True)
    for suite, names in by_suite(scores).items():
        groups = {name: scores[name] for name in names}
        measured = {name: [row for row in rows if row["metrics"]] for name, rows in groups.items()}
        met = {name: ratings.get(name, []) for name in names}
        for title, columns, shown, told in (
            (
                ABOUT_SUITES.get(suite, "scenarios of no suite"),
                SCORES,
                groups,
                lambda rows: (_scale_note(rows), blind_note(rows), *further_protocols(rows)),
            ),
            ("more figures", (AGENT, metrics), measured, lambda rows: ()),
            ("head to head", RATINGS, met, rating_notes),
        ):
            if any(shown.values()):
                yield _grouped(f"{suite}: {title}", columns, shown, told)


def _grouped(
    title: str,
    columns: Sequence[Column[Any]],
    groups: Mapping[str, Sequence[Any]],
    notes: Callable[[Sequence[Any]], Sequence[str]],
) -> Table:
    """Make one table of the rows of several scenarios, whose names stand in front, each in its first row."""
    firsts = {id(rows[0]): name for name, rows in groups.items() if rows}
    told = [f"{name}: {note}" for name, rows in groups.items() if rows for note in notes(rows) if note]
    told += [
        f"{name}: {row['agent']}: {note}" for name, rows in groups.items() for row in rows if (note := agent_note(row))
    ]

    def alone(column: Column[Any]) -> Column[Any]:
        return replace(column, figure=lambda row: column.figure(row)._replace(note=""))

    scenario = replace(SCENARIO, figure=lambda row: Figure(firsts.get(id(row), "")), left=True, none="")
    return Table(
        "", title, [scenario, *map(alone, columns)], told, rows=[row for own in groups.values() for row in own]
    )


def level_figure(row: LadderView) -> Figure:
    """Return a level with its interval; ``<1`` and ``>10`` beyond the levels that were played."""
    value, low, high = (row["level"][key] for key in ("value", "low", "high"))
    if row["beyond"] == "below":
        return Figure(f"<{row['first']}", value, "" if high is None else f"at most {number(high, '.1f')}")
    if row["beyond"] == "above":
        return Figure(f">{row['last']}", value, "" if low is None else f"at least {number(low, '.1f')}")
    return estimate_figure(row["level"], ".1f")


def _of_most_samples(rows: Sequence[SampleView]) -> Mapping[str, Figure]:
    """Return the figures of an agent over all samples that it has, if they are of one scenario."""
    if not rows or len({row["scenario"] for row in rows}) > 1:
        return {}
    k, most = rows[-1]["k"], rows[-1]
    return {
        f"best of {k}": estimate_figure(most["best"], ".2f"),
        f"pass@{k}": estimate_figure(most["pass_at_k"], ".0%"),
    }


def _share(key: str, explain: str, *, always: bool = False) -> Column[Any]:
    """Make a column of a share that mostly never happens."""

    def happened(rows: Rows) -> bool:
        return always or any(row[key] is not None and row[key]["value"] > 0 for row in rows)

    return estimate(key, key.replace("_", " "), ".1%", "ascending", explain=explain, needed=happened)


def _kind(key: str) -> Column[SkillView]:
    def figure(row: SkillView) -> Figure:
        if (one := row["kinds"].get(key)) is None or not one["decisions"]:
            return Figure()
        shown = estimate_figure(one["lost"], ".0%")
        return shown._replace(interval=f"{shown.interval} in {one['decisions']:.0%}".strip())

    return Column(f"kind-{key}", KINDS[key], figure, wide_only=key in ("first", "last", "unread"))


def size_figure(count: int | None) -> Figure:
    """Return a number of parameters with three digits: ``135M``."""
    units = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
    told = next((f"{count / unit:.3g}{letter}" for unit, letter in units if count and count >= unit), str(count))
    return Figure() if count is None else Figure(told, float(count))


SIZE: Column[Any] = Column(
    "size", "size", lambda row: size_figure(row["size"]), "ascending", explain="parameters of the model"
)


def _count(key: str, title: str, **about: Any) -> Column[ReadingView]:
    return Column(key, title, lambda row: figure_of(row["counts"][key], ",.0f"), "ascending", **about)


READINGS: tuple[Column[ReadingView], ...] = (
    AGENT,
    SCENARIO,
    _count("answers", "answers"),
    estimate("invalid", "invalid", ".0%", "ascending"),
    estimate("read", "of these read", ".0%"),
    estimate("optimal", "optimal", ".0%", explain="of the decisions so read", needed=_any("optimal")),
    value("chance", "by chance", ".0%", explain="what random actions there would be", needed=_any("optimal")),
    value("lost", "value lost", ".3f", first="ascending", needed=_any("optimal")),
)


def rescored_table(rows: Sequence[ReadingView]) -> Table:
    """Make the table of answers that were read again, with what else their reading would have changed."""
    further = (
        _count("changed", "read otherwise", needed=lambda rows: any(row["counts"]["changed"] for row in rows)),
        value("unknown", needed=_any("unknown")),
        _count("diverged", "differ"),
        value("first_round", "from round", ".1f"),
        value("lost_executed", "lost as played", ".3f", needed=_any("optimal")),
        value("lost_decided", "lost as read", ".3f", needed=_any("optimal")),
    )
    notes = (
        "read otherwise: answers that could be read; unknown: episodes that don't replay to what was seen, or are "
        f"beyond {LIMIT:,} of a scenario",
        "differ: episodes in which a decision as read isn't what was executed; what follows was never played, so the "
        "first such decision alone counts: its round, and the value lost by either",
    )
    return Table("", f"{rows[0]['reading']} reading", (*READINGS, *further), notes, rows=rows)


_TABLES = (
    Table(
        "sizes",
        "by model size",
        (AGENT, SIZE, *OVERALL[2:], CPU),
        ("models by their number of parameters as loaded, trained on these games or not",),
        lambda scored: size_rows(scored.results, scored.overall, scored.scores),
        sorted_by="size",
    ),
    Table(
        "ladders",
        "levels",
        (
            AGENT,
            replace(SCENARIO, title="ladder"),
            Column("level", "level", level_figure),
            value("spread", form=".1f", wide_only=True),
            value("episodes", form=","),
            Column(
                "rungs",
                "kept at each level",
                lambda row: Figure(
                    " ".join(f"{one['level']}:{number(one['kept']['value'], '.2f')}" for one in row["rungs"])
                ),
                wide_only=True,
            ),
        ),
        (
            "the level at which half is kept of what best play gets above play that doesn't read; the share that is "
            "kept at each level has few episodes behind it where the level is far from that",
        ),
        lambda scored: ladder_rows(scored.results, scored.references),
        "The level is where half of what is between 0 and 1 is kept, with 95% intervals.",
        lambda rows: {f"{row['scenario']} level": level_figure(row) for row in rows},
    ),
    Table(
        "skill",
        "which skill",
        (AGENT, SCENARIO, estimate("lost", "value lost", first="ascending", explain="per episode"), *map(_kind, KINDS)),
        (
            "where values are exact: which share of the value lost was lost at decisions of a kind, and in which share "
            "of the decisions; kinds overlap, and who lost nothing isn't listed",
        ),
        lambda scored: skill_rows(scored.results, scored.agents),
    ),
    Table(
        "protocols",
        "by protocol",
        (
            AGENT,
            SCENARIO,
            Column("protocol", "protocol", lambda row: Figure(label(row["protocol"], row["moves"]) or row["protocol"])),
            estimate("mean", "mean return"),
            estimate("invalid_rate", "invalid", ".0%", "ascending"),
            estimate(
                "difference",
                "less the first",
                "+.3f",
                explain="the mean paired difference to the agent's first protocol in this scenario",
            ),
            value("pairs", "seeds", wide_only=True),
        ),
        (
            "the same agents on the same seeds, by what an unreadable response leads to; the last interval is that of "
            "the mean difference to the first of an agent's protocols, seed by seed; returns are luck-free where there "
            "are such",
        ),
        lambda scored: protocol_rows(scored.results, scored.scores),
        "The protocols side by side: add --stats.",
    ),
    Table(
        "samples",
        "over samples of each start",
        (
            AGENT,
            SCENARIO,
            value("k", first="ascending"),
            estimate("mean", "mean return"),
            estimate("best", "best of k"),
            estimate("worst", "worst of k"),
            estimate("pass_at_k", "pass@k", ".0%", explain="one or more of k succeed", needed=_any("pass_at_k")),
            estimate("pass_all_k", "pass^k", ".0%", explain="all of k succeed", needed=_any("pass_all_k")),
            value("samples", wide_only=True),
            value("starts", wide_only=True),
        ),
        (
            "plain returns of the same starts and chances, played several times; means over all choices of k of a "
            "start's samples, which is unbiased for k; intervals are over starts; in other tables the first sample "
            "stands for all",
        ),
        lambda scored: sample_rows(scored.every),
        "Best of k and pass@k are over all samples, other figures of the first; worst of k and pass^k: add --stats.",
        _of_most_samples,
    ),
    Table(
        "reliability",
        "reliability",
        (
            AGENT,
            value("responses", form=","),
            _share("invalid", "responses that named no legal action", always=True),
            _share("cut_off", "responses that ran out of tokens"),
            _share("refused", "responses that are a refusal, as the server says"),
            _share("forfeited", "episodes that were lost by a response that couldn't be read"),
            _share("timed_out", "episodes that are unscored because a server took too long"),
            _share("failed", "episodes that are unscored for another error"),
        ),
        (
            "how often an agent answers as it should, whatever it then plays; forfeited, timed out and failed are "
            "shares of episodes, the others of responses; what has no column here never happened",
        ),
        lambda scored: reliability_rows(scored.results, scored.agents),
    ),
    Table(
        "readings",
        "lenient reading",
        READINGS,
        (
            "in no score: of an answer that couldn't be read, the last sentence with a name, if it names one legal "
            "action alone, whatever case, markup and punctuation; a share of optimal decisions far above that of "
            "random ones tells a wrong form from talk",
        ),
        lambda scored: [row for row in reading_rows(scored.results, scored.agents) if row["episodes"]],
    ),
)


def board_tables() -> tuple[Table, ...]:
    """Return the tables beside the scores, those of installed packages last."""
    return (*_TABLES, *filter(None, loaded(ENTRY_POINT_GROUP, _left_out).values()))


@cache
def _left_out(entry: EntryPoint, wrong: str) -> None:
    """Print, once, that a package's table isn't shown, and why."""
    package = entry.dist.name if entry.dist else "an installed package"
    print(f"textbench: the table {entry.name!r} of {package} ({entry.value}) {wrong}; left out", file=sys.stderr)


def found_tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables for which a document has rows; notes say what some of these lack, and how to get it."""
    return [
        replace(
            table,
            rows=rows,
            notes=(*table.notes, *dict.fromkeys(lack for row in rows for lack in row.get("missing", ()))),
        )
        for table in board_tables()
        if (rows := document.get(table.key))
    ]


COMPARISON_NOTES = (
    "Difference: mean of (return of A - return of B) over the seeds that both played, with its 95% interval.",
    "The returns are luck-free where both have such (textbench leaderboard shows them beside the plain ones).",
    "p: paired sign-flip test, two-sided; Holm: corrected over all rows of all tables here, and over all scenarios.",
    "If nothing differs, p takes each pair to be as likely to fall either way. A rare disaster that no start has shown "
    "is in no p and in no interval: play more starts if one is possible.",
    "Episodes needed: to show a difference of this size with power 0.8 at level 0.05 after the same correction; in "
    "brackets their 95% interval.",
)


def p_text(value: float) -> str:
    """Return a p-value with the digits that mean something."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


COMPARISONS: tuple[Column[Any], ...] = (
    replace(SCENARIO, left=True),
    value("pairs"),
    estimate("difference", "difference", "+.3f"),
    Column("p_value", "p", lambda row: Figure(p_text(row["p_value"]))),
    Column("p_holm", "p (Holm)", lambda row: Figure(p_text(row["p_holm"]))),
    Column(
        "episodes_needed",
        "episodes needed",
        lambda row: (
            Figure()
            if row["episodes_needed"] is None
            else Figure(
                f"{row['episodes_needed']:,} [{row['episodes_needed_low']:,}, "
                + ("...]" if row["episodes_needed_high"] is None else f"{row['episodes_needed_high']:,}]")
            )
        ),
    ),
)


def comparison_tables(
    rows: Sequence[ComparisonView], overall: Sequence[OverallComparisonView], ratings: Sequence[RatingView]
) -> list[Table]:
    """Make one table for each pair of agents, below its verdict, and those of the games in which they met."""
    verdicts = {(row["a"], row["b"]): verdict_sentence(row) for row in overall}
    pairs: dict[tuple[str, str], list[ComparisonView]] = {}
    for row in rows:
        pairs.setdefault((row["a"], row["b"]), []).append(row)
    tables = [
        Table("", f"A = {a}, B = {b}", COMPARISONS, rows=own, lead=verdicts.get((a, b), ""))
        for (a, b), own in pairs.items()
    ]
    if tables:
        tables[-1] = replace(tables[-1], last=COMPARISON_NOTES)
    return [*tables, *(rating_table(*one) for one in _by_scenario(ratings).items())]


def verdict_sentence(row: OverallComparisonView) -> str:
    """Return which of two agents is better, by how much, with which interval and p, and which scenarios decide it."""
    several = len(row["scenarios"]) > 1
    over = f"over {len(row['scenarios'])} scenarios" if several else f"in {row['scenarios'][0]}"
    what = "overall score" if row["unit"] == "score" else "mean return"
    value, low, high = row["difference"], row["low"], row["high"]
    ahead, other = (row["a"], row["b"]) if value >= 0 else (row["b"], row["a"])
    if value < 0:
        value, low, high = -value, None if high is None else -high, None if low is None else -low
    figure = estimate_figure({"value": value, "low": low, "high": high})
    by = f"{figure.text} {figure.interval}".strip()
    corrected = f"p {p_text(row['corrected'])} after correction for {row['comparisons']} comparisons"
    by += f", {corrected}" if row["comparisons"] > 1 else f", p {p_text(row['p'])}"
    if row["verdict"] == TIE:
        needed, starts, more = row.get("starts_needed"), row["starts"], "no number of starts would tell"
        if needed is not None:
            further, least, high = needed["value"] - starts, needed["low"] - starts, needed["high"]
            between = f"at least {least:,}, and perhaps none" if high is None else f"{least:,} to {high - starts:,}"
            each = " of each scenario" if several else ""
            more = f"about {further:,} more start{'' if further == 1 else 's'}{each} would tell ({between})"
        return f"{row['a']} and {row['b']} can't be told apart {over}: {what} of {ahead} higher by {by}; {more}."
    decided = f"; decided by {listed(row['decided_by']) or 'no scenario alone'}" if several else ""
    against = f"; {other} is better in {listed(row['against'])}" if row["against"] else ""
    apart = "" if row["corrected"] < LEVEL else "; their own intervals have no point in common"
    return f"{ahead} is better than {other} {over}: {what} higher by {by}{apart}{decided}{against}."
