"""Sentences for readers: what 0 and 1 mean, what must be known of a table's rows, and the order of scenarios."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.protocol import LEGAL_ONLY, RETRIES, TOOLS
from benchmark.score.document import EstimateView, OverallView, RatingView, ReadingView, ScoreView
from benchmark.score.protocols import label, plain_name
from textgames.scenarios import SUITES

MOST_NAMES = 12  # of scenarios that a note lists
MOST_NAMED = 4  # scenarios of one kind that a sentence names
OTHERS = "others"  # the group of the scenarios that no suite has, such as a user's own games
SHORT_FIRST = "which favours short episodes, as they end first"  # of partial figures
SUITE_NOTE = "overall scores of each suite alone; empty where an agent lacks one of the suite's scenarios"
ZERO = "0 is the best play that doesn't read"  # in every table; each scenario says which play that is
ENDS = f"{ZERO}, 1 the scenario's reference: optimal play where that is known, else a strong player's"
PROTOCOL_NOTES = {
    "random": "executes a random legal action",
    "default": "executes the first legal action",
    "forfeit": "loses the episode",
    "retry": "is given again, up to {more} times, and then loses the episode",
    LEGAL_ONLY: "can't be written by language models, which are held to the legal moves where these are listed",
    TOOLS: "executes a random legal action; language models answer by calling a tool",
}


def scale_ends(rows: Sequence[ScoreView]) -> list[tuple[str, float, str]]:
    """Return the known ends of a scenario's normalised scores as (name, return, source), 0 first.

    They are those of the agent with the most episodes: others may have played fewer.
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
    """Return the meaning of 0 and 1 in these scenarios, by each one's reference; empty if no score has a scale."""
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
    """Return why a normalised score may exceed 1, if one of these does; without a kind for all scenarios."""
    if not any(one and max(one["value"], one["high"] or 0.0) > 1.005 for one in estimates):
        return ""
    luck = "optimal is what perfect play gets on average, and luck may bring more"
    player = "the reference is a strong player, not the optimum"
    if kind is None:
        return f"A score may exceed 1: {luck}; elsewhere {player}."
    return f"A score may exceed 1: {luck if kind == 'optimal' else player}."


def blind_note(rows: Sequence[ScoreView] | Sequence[OverallView]) -> str:
    """Return which agents can't be told from a player that doesn't read, or are worse than one."""
    names = [row["agent"] for row in rows if row["above_blind"] is False]
    return f"no better than blind play, within chance: {', '.join(names)}" if names else ""


def home_suite(scenario: str) -> str:
    """Return the suite under which a scenario is shown: the first that has it, and it stands in no table twice."""
    name = plain_name(scenario)
    return next((suite for suite, names in SUITES.items() if name in names and suite != "all"), OTHERS)


def by_suite(scenarios: Iterable[str]) -> dict[str, list[str]]:
    """Return ``{suite: scenarios}`` of these scenarios, in the order of the suites and within each of them as given."""
    groups: dict[str, list[str]] = {suite: [] for suite in (*SUITES, OTHERS)}
    for scenario in scenarios:
        groups[home_suite(scenario)].append(scenario)
    return {suite: names for suite, names in groups.items() if names}


def listed(names: Sequence[str]) -> str:
    """Return the names, or the first ones and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names if more <= 0 else [*names[:MOST_NAMES], f"{more} more"])


def agent_note(row: Mapping[str, Any]) -> str:
    """Return why an agent has no rank in a scenario, and which models answered; empty in other tables."""
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
    """Return why an agent's figures in a scenario aren't what they seem, which a reader shouldn't have to ask for."""
    warnings = []
    if row["left_out"]:
        warnings.append(f"the server refuses {', '.join(row['left_out'])}, which it wasn't sent")
    if row["eaten_up"]:
        warnings.append(f"reasoning left no token for {row['eaten_up']} responses; allow more: reasoning_tokens")
    return "; ".join(warnings)


def lenient_note(agent: str, readings: Sequence[ReadingView]) -> str:
    """Return what a lenient reading makes of an agent's unreadable answers: how many are decisions, and how good."""
    own = [row for row in readings if row["agent"] == agent]
    invalid, read, valued, optimal = (
        sum(row["counts"][key] for row in own) for key in ("invalid", "read", "valued", "optimal")
    )
    if not invalid:
        return ""
    told = f"a lenient reading, which no score goes by, reads {read / invalid:.0%} of them"
    chance = sum(row["counts"]["valued"] * (row["chance"] or 0.0) for row in own)
    good = (
        f", and {optimal / valued:.0%} of these decisions are optimal ({chance / valued:.0%} by chance)"
        if valued
        else ""
    )
    return told + good


def source_notes(document: Mapping[str, Any]) -> list[str]:
    """Return which agents' results are of which season, and who vouches for the responses of which entries."""
    found: dict[str, list[str]] = {}
    for agent in document["agents"]:
        if season := document["sources"][agent["source"]].get("season"):
            found.setdefault(f"season {season}", []).append(agent["name"])
    for agent in document["agents"]:
        if tier := agent.get("authorship"):
            found.setdefault(tier, []).append(agent["name"])
    return [f"{what}: {listed(names)}" for what, names in found.items()]


def without_luck(rows: Sequence[ScoreView]) -> bool:
    """Return whether these rows' scores are corrected for luck by exact values."""
    return any(row["luck"] and row["luck_free_return"] for row in rows)


def protocol_note(row: Mapping[str, Any]) -> str:
    """Return the effect of an unreadable response in a scenario, and whether its prompts list the legal moves."""
    rule, _, observe = row["protocol"].partition("+")
    told = PROTOCOL_NOTES.get(rule.partition(":")[0], rule)
    more = rule.partition(":")[2] or str(RETRIES)
    unlisted = "; prompts don't list the legal moves" if row["moves"] == "unlisted" else ""
    pictures = {"image": "; observations are pictures", "both": "; observations are pictures and text"}.get(observe, "")
    return f"an unreadable response {told.format(more=more)}{unlisted}{pictures}"


def further_protocols(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the notes of protocols other than a plain run's; each with its label if they differ."""
    notes = {label(row["protocol"], row["moves"]): protocol_note(row) for row in rows}
    return [f"({name}) {note}" if len(notes) > 1 else note for name, note in notes.items() if name]


def luck_note(rows: Sequence[ScoreView]) -> str:
    """Return which returns the normalised scores and ranks of a scenario go by, if some are corrected for luck."""
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


def rating_notes(rows: Sequence[RatingView]) -> list[str]:
    """Return the limits of one scenario's ratings: agents without one, several scales, circles, single games."""
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
