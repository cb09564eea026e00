"""What a reader must know of the rows of a table, as sentences below it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.protocol import LEGAL_ONLY, RETRIES
from benchmark.score.comparing.protocols import label
from benchmark.score.document import OverallView, RatingView, ScoreView, SuiteView
from benchmark.show.tables.figures import listed
from benchmark.show.tables.scale import above_one, blind_note, scale_sentence

SHORT_FIRST = "which favours short episodes, as they end first"
"""What partial figures lean to."""


def agent_note(row: Mapping[str, Any]) -> str:
    """What a reader must know of an agent in a scenario: why it has no rank, and which models answered under its name.

    Nothing of the rows of other tables than the scores'.
    """
    if "planned" not in row:
        return ""
    missing = row["planned"] - row["episodes"] - row["unscored"]
    reasons = [f"{row['unscored']} unscored"] if row["unscored"] else []
    reasons += [f"{missing} of {row['planned']} not played"] if missing > 0 else []
    reasons += [SHORT_FIRST] if missing > 0 and row["episodes"] else []
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


def source_notes(document: Mapping[str, Any]) -> list[str]:
    """Tell which agents' results are of which season, and who vouches for the responses of which entries."""
    found: dict[str, list[str]] = {}
    for agent in document["agents"]:
        if season := document["sources"][agent["source"]].get("season"):
            found.setdefault(f"season {season}", []).append(agent["name"])
    for agent in document["agents"]:
        if tier := agent.get("authorship"):
            found.setdefault(tier, []).append(agent["name"])
    return [f"{what}: {listed(names)}" for what, names in found.items()]


def without_luck(rows: Sequence[ScoreView]) -> bool:
    """Whether luck was taken out of these rows' scores by exact values."""
    return any(row["luck"] and row["luck_free_return"] for row in rows)


def protocol_note(row: Mapping[str, Any]) -> str:
    """What the unreadable responses of a scenario led to, and what its prompts didn't tell."""
    told = PROTOCOL_NOTES.get(row["protocol"].partition(":")[0], row["protocol"])
    more = row["protocol"].partition(":")[2] or str(RETRIES)
    unlisted = "; prompts don't list the legal moves" if row["moves"] == "unlisted" else ""
    return f"an unreadable response {told.format(more=more)}{unlisted}"


def further_protocols(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The notes of those that aren't a plain run's, which everybody expects; each with its label where they differ."""
    notes = {label(row["protocol"], row["moves"]): protocol_note(row) for row in rows}
    return [f"({name}) {note}" if len(notes) > 1 else note for name, note in notes.items() if name]


PROTOCOL_NOTES = {
    "random": "executes a random legal action",
    "default": "executes the first legal action",
    "forfeit": "loses the episode",
    "retry": "is given again, up to {more} times, and then loses the episode",
    LEGAL_ONLY: "can't be written by language models, which are held to the legal moves where these are listed",
}


SUITE_NOTE = "overall scores of each suite alone; empty where an agent lacks one of the suite's scenarios"


def suite_notes(suites: Sequence[SuiteView]) -> list[str]:
    """What each suite's score is over."""
    return [SUITE_NOTE, *(f"{suite['name']}: over {listed(suite['scenarios'])}" for suite in suites)]


def luck_note(rows: Sequence[ScoreView]) -> str:
    """Which returns the normalised scores and ranks of a scenario go by, where luck was taken out of some."""
    measured = next((row["luck"] for row in rows if row["luck"]), None)
    if measured is None:
        return ""
    if not without_luck(rows):
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
