"""What 0 and 1 mean, in words: the ends of the scale of normalised scores, said once for every output."""

from collections.abc import Iterable, Sequence

from benchmark.score.document import EstimateView, OverallView, ScoreView

ZERO = "0 is the best play that doesn't read"
"""In every table; what that play is stands with each scenario."""

ENDS = f"{ZERO}, 1 the scenario's reference: optimal play where that is known, else a strong player's"

MOST_NAMED = 4
"""The most scenarios of one kind that a sentence names."""


def scale_ends(rows: Sequence[ScoreView]) -> list[tuple[str, float, str]]:
    """The known ends of a scenario's normalised scores as (name, return, source), 0 first.

    The 1 is called "optimal" where it is that, else "reference". They are those of the agent with the most episodes:
    others may have played fewer.
    """
    if not rows:
        return []
    known = max(rows, key=lambda row: row["episodes"])
    blind, reference = known["blind"], known["reference"]
    ends = (
        ("blind", blind["value"], blind["policy"]),
        (reference["kind"] or "reference", reference["value"], reference["source"]),
    )
    return [(name, value, source) for name, value, source in ends if value is not None]


def scale_sentence(rows: Sequence[ScoreView], scenarios: Iterable[str] | None = None) -> str:
    """What 0 and 1 are in these scenarios, by the kind of each one's reference; empty where no score has a scale."""
    scaled = {row["scenario"]: row["reference"] for row in rows if row["normalized"]}
    wanted = [name for name in (scaled if scenarios is None else scenarios) if name in scaled]
    played = [name for name in wanted if scaled[name]["kind"] != "optimal"]
    players = " or ".join(dict.fromkeys(scaled[name]["source"].partition(" (")[0] for name in played))
    if not wanted:
        return ""
    if not played:
        return f"{ZERO}, 1 is optimal play."
    if len(played) == len(wanted):
        return f"{ZERO}, 1 is what the {players} gets, which can be beaten."
    where = ", ".join(played) if len(played) <= MOST_NAMED else f"{len(played)} of {len(wanted)} scenarios"
    return f"{ZERO}, 1 is optimal play; in {where} it is what the {players} gets, which can be beaten."


def above_one(estimates: Sequence[EstimateView | None], kind: str | None = None) -> str:
    """Why a normalised score may exceed 1, where one of these does; for all scenarios together without a kind."""
    if not any(one and max(one["value"], one["high"] or 0.0) > 1.005 for one in estimates):
        return ""
    luck = "optimal is what perfect play gets on average, and luck may bring more"
    player = "the reference is a strong player, not the optimum"
    if kind is None:
        return f"A score may exceed 1: {luck}; elsewhere {player}."
    return f"A score may exceed 1: {luck if kind == 'optimal' else player}."


def blind_note(rows: Sequence[ScoreView] | Sequence[OverallView]) -> str:
    """Who can't be told from a player that doesn't read, or is worse than one."""
    names = [row["agent"] for row in rows if row["above_blind"] is False]
    return f"no better than blind play, within chance: {', '.join(names)}" if names else ""
