"""The table of what wordings do to a score: ``WordingView -> Figure``. What they mean: docs/wordings.md."""

from benchmark.score.document import WordingView
from benchmark.show.columns import Column, Figure, estimate_figure, number

WORDING_NOTE = (
    "mean returns; the first interval is for these wordings, the second for wordings like these; the spread is the "
    "standard deviation between wordings, and the last column says what would halve the second interval"
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


WORDINGS: tuple[Column[WordingView], ...] = (
    Column("agent", "agent", lambda row: Figure(row["agent"]), "ascending"),
    Column("scenario", "scenario", lambda row: Figure(row["scenario"]), "ascending"),
    Column("over_starts", "over starts", lambda row: estimate_figure(row["over_starts"])),
    Column("over_wordings", "over starts and wordings", lambda row: estimate_figure(row["over_wordings"])),
    Column("spread", "spread", lambda row: Figure(number(row["spread"]))),
    Column("means", "by wording", _by_wording, wide_only=True),
    Column("to_halve", "to halve it", _to_halve, wide_only=True),
)
