"""What stands around the tables of scores: who the agents are, which scenarios there are, each suite at a glance."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from agents.common.intervals import is_above
from benchmark.score.document import AgentView, OverallView, ScenarioView, ScoreView, ViewDocument
from benchmark.score.scores import ranked_by
from benchmark.show.page.tables import DASH, MINUS, Drawn, Table, address, capitalised, plain_table
from benchmark.show.tables.columns import OVERALL
from benchmark.show.tables.figures import Column, Figure, agent_figure, estimate_figure
from benchmark.show.tables.scale import ENDS
from benchmark.show.tables.suites import by_suite

MOST_BEST = 3  # names of agents that share the first rank of a scenario, in the list of scenarios
LOCAL, SCRIPTED, SERVED, OWN = "local model", "scripted", "served model", "Python policy"


def kind_of(agent: AgentView) -> str:
    """What sort of player an agent is, for people: a script, a model in the run's own process, one behind a server."""
    kind, settings = agent["kind"], agent["settings"]
    if kind == "scripted":
        return SCRIPTED
    if kind == "python":
        return OWN
    own_process = "model_class" in settings or kind in ("hf", "vllm") or kind.startswith("tiny")
    return LOCAL if own_process else SERVED


def size_of(agent: AgentView) -> int | None:
    """How many parameters an agent's model has; ``None`` where nobody knows, as of a model behind a server."""
    count = agent["settings"].get("model_parameters")
    return count if isinstance(count, int) and count > 0 else None


def size_text(count: int | None) -> str:
    """A number of parameters in few letters, such as ``219k`` or ``7.6B``."""
    if count is None:
        return ""
    for unit, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return str(count)


def game_name(env_id: str) -> str:
    """The name of a game for people: ``TextFrozenLake-v0`` is ``Frozen Lake``."""
    name = re.sub(r"-v\d+$", "", env_id.rpartition(":")[2].removeprefix("Text"))
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)


def agent_columns(document: ViewDocument) -> list[Column[OverallView]]:
    """The overall table's columns that say who an agent is: what kind of player, and how large its model."""
    agents = {agent["name"]: agent for agent in document["agents"]}

    def kind(row: OverallView) -> Figure:
        text = kind_of(agents[row["agent"]])
        return Figure(text, text)

    def size(row: OverallView) -> Figure:
        count = size_of(agents[row["agent"]])
        return Figure(size_text(count), None if count is None else float(count))

    sized = any(size_of(agent) for agent in document["agents"])
    return [
        Column("kind", "Kind", kind, "ascending", optional=True),
        Column("size", "Size", size, "ascending", "parameters of the model", optional=True, needed=lambda rows: sized),
    ]


def scenario_index(document: ViewDocument) -> Table:
    """Every scenario with its game, its length, and who is best; each leads to its own view."""
    groups = by_suite(scenario["name"] for scenario in document["scenarios"])
    known = {scenario["name"]: scenario for scenario in document["scenarios"]}
    rows = tuple(
        _index_row(known[name], suite, [row for row in document["scores"] if row["scenario"] == name])
        for suite, names in groups.items()
        for name in names
    )
    titles: tuple[tuple[str, str, Literal["ascending", "descending"]], ...] = (
        ("scenario", "Scenario", "ascending"),
        ("game", "Game", "ascending"),
        ("suite", "Suite", "ascending"),
        ("players", "Players", "ascending"),
        ("horizon", "Rounds, at most", "ascending"),
        ("best", "Best agents", "ascending"),
        ("score", "Their score", "descending"),
    )
    columns: list[Column[Any]] = [Column(key, title, lambda row: Figure(), first) for key, title, first in titles]
    note = f"Score: normalised, {ENDS}; where a game has no such scale, the mean return."
    return Table("scenarios", "All scenarios", tuple(columns), rows, "suite", (note,))


def _index_row(scenario: ScenarioView, suite: str, scores: Sequence[ScoreView]) -> tuple[Drawn, ...]:
    name, game = scenario["name"], game_name(scenario["env_id"])
    first = [row for row in scores if row["rank"] == 1]
    # whoever shares the first rank without as high a mean isn't told apart from the best one, and isn't the best
    best = [row for row in first if not is_above(_mean(first[0]), _mean(row))]
    named = [row["agent"] for row in best[:MOST_BEST]]
    more = f" and {len(best) - MOST_BEST} more" if len(best) > MOST_BEST else ""
    more += f"; {len(first) - len(best)} not told apart" if len(first) > len(best) else ""
    tie = "tie: " if len(best) > 1 else ""
    shown = next((row["normalized"] or row["mean_return"] for row in best), None)
    scaled = bool(best and best[0]["normalized"])
    value = estimate_figure(shown, ".2f") if shown else Figure()
    unit = "" if scaled or not value.text else "return"
    return (
        Drawn(name, name, href=address("leaderboard", scenario=name)),
        Drawn(game, game),
        Drawn(suite, suite),
        Drawn(str(scenario["num_players"]), float(scenario["num_players"])),
        Drawn(str(scenario["horizon"]), float(scenario["horizon"])),
        Drawn(tie + ", ".join(named) + more or DASH, named[0].casefold() if named else None),
        Drawn(value.text.replace("-", MINUS) or DASH, value.sort if scaled else None, note=unit),
    )


def _mean(row: ScoreView) -> float:
    ranked = ranked_by(row)
    return ranked["value"] if ranked else float("-inf")


def suite_grid(document: ViewDocument, suite: str, names: Sequence[str]) -> Table | None:
    """The agents over the scenarios of one suite, a normalised score each; ``None`` where there are not two to show."""
    scores = {(row["agent"], row["scenario"]): row for row in document["scores"]}
    scaled = [name for name in names if any(row["normalized"] for key, row in scores.items() if key[1] == name)]
    if len(scaled) < 2:
        return None

    def column(name: str) -> Column[Any]:
        def figure(row: OverallView) -> Figure:
            score = scores.get((row["agent"], name))
            return Figure() if score is None else estimate_figure(score["normalized"], ".2f")

        return Column(name, name, figure)

    agent = replace(OVERALL[1], figure=agent_figure)
    columns = [*capitalised([agent]), *map(column, scaled)]
    rows = [row for row in document["overall"] if any((row["agent"], name) in scores for name in scaled)]
    table = plain_table(f"suite-{suite}", f"{suite}: normalised scores", columns, rows)
    return table._replace(sorted_by="", notes=(f"Normalised scores: {ENDS}.",))
