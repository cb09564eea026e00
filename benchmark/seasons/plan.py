"""What a run plays, in a season or outside: ``--season DIR`` decides all but the agents, and checks these."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.turn import Policy
from benchmark.errors import UsageError
from benchmark.play.agents.choice import PlannedRun, plan_run
from benchmark.play.agents.players import is_shipped
from benchmark.play.options import RunOptions, flag_of
from benchmark.seasons.season import Season


def plan_played(
    options: RunOptions, say: Callable[[str], None], policies: Mapping[str, Policy] | None = None
) -> PlannedRun:
    """Decide who plays what: as :func:`~benchmark.play.agents.choice.plan_run`, or by the terms of a season.

    Raises:
        UsageError: as there, no season, or an agent that isn't the registered one: said before anything is played.
    """
    if options.season is None:
        return plan_run(options, say, policies)
    season = Season.open(Path(options.season))
    planned = plan_run(_decided(options, season), say, policies, season.key_of)
    for card in planned.players.check(planned.plan):
        season.check_card(card, planned.options.by_agent.get(card["name"], {}))
    return planned._replace(season=season.mark)


def _decided(options: RunOptions, season: Season) -> RunOptions:
    """What ``--season`` stands for: its scenarios, episodes, seeds and rules, and those of its agents that ship.

    Raises:
        UsageError: one whose seeds nobody knows yet, no agent, or an option that the season decides.
    """
    terms = season.terms
    decided: dict[str, Any] = {
        "scenarios": terms.scenarios,
        "episodes": terms.episodes,
        "seed_offset": terms.seed_offset,
    }
    decided |= terms.settings
    playing = ("suites", "level", "levels", "twin", "twins", "resample", "until", "legal_only", "protocols")
    for name in (*decided, *playing):
        if name in options.given and getattr(options, name) != decided.get(name):
            raise UsageError(f"{flag_of(name)} can't be given with --season: the season {season.path} decides it")
    # a folder from elsewhere names nobody whose code or server would be used; that does the user alone
    specs = {one["card"]["name"]: one["card"]["spec"] for one in season.agents.values()}
    shipped = [name if name == spec else f"{name}={spec}" for name, spec in specs.items() if is_shipped(spec)]
    if not options.agents and not shipped:
        raise UsageError(f"none of {', '.join(specs)} ships with textbench; say who plays: --agent NAME=SPEC")
    given = options.given | {"scenarios", "episodes", "agents"}
    return replace(options, **decided, agents=options.agents or tuple(shipped), given=given)
