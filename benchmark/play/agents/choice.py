"""What a run plays of what was asked for: which scenarios, which agents, and who sits out where.

``--scenario, --suite, --agent -> Choice, agents -> pairs (agent, scenario) that aren't played -> PlannedRun``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agents.baselines.search import find_search_player
from agents.load import check_spec
from agents.models.embedded import READS
from agents.policy import why_not_legal_only
from agents.protocol import read_protocol
from agents.turn import Policy
from agents.wrappers import models_inside
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec, with_agent_options, with_keys
from benchmark.play.agents.players import (
    Players,
    embedded_models,
    load_policy,
    missing_models,
    unloaded,
    why_not_played,
)
from benchmark.play.claims import with_agent_folders
from benchmark.play.options import RunOptions, levels_in
from benchmark.play.until import first_plan
from benchmark.runs.plan import Plan, find_scenarios, find_suite, played_by, with_settings
from benchmark.score.stopping import MOST
from textgames.environments.rules import EpisodeRules
from textgames.scenarios import SCENARIOS, Scenario

Say = Callable[[str], None]


class PlannedRun(NamedTuple):
    """All that is known of a run before anything is played or written."""

    options: RunOptions  # with the agents and the scenarios by their names
    players: Players
    plan: Plan  # with ``--until`` that of the first look
    season: Mapping[str, str] | None = None  # the name of the season and the digest that it is known by


def plan_run(
    options: RunOptions,
    say: Say,
    policies: Mapping[str, Policy] | None = None,
    key_of: Callable[[str], str] | None = None,
) -> PlannedRun:
    """Decide who plays what; ``say`` is told who doesn't play what.

    ``policies`` are the agents that needn't be made, by name. ``key_of`` decides the key of every agent that runs a
    program by its name; by default they are drawn. A UsageError is raised for a name that doesn't exist, two agents of
    one name, or an agent that can't play what was named with it.
    """
    choice = with_twins(with_levels(choose_scenarios(options), options, say), options, say)
    agents = options.agents or tuple(default_agents(choice.scenarios.values()))
    if not options.agents and (missing := missing_models()) is not None:
        say(missing)
    options = with_agent_folders(replace(options, agents=agents, scenarios=tuple(choice.scenarios)))
    if options.until is not None and "episodes" not in options.given:
        options = replace(options, episodes=MOST)
    specs = {spec.name: spec.spec for spec in map(AgentSpec.parse, options.agents)}
    try:
        for name, spec in specs.items():
            if name not in (policies or {}):
                check_spec(spec)
    except ValueError as error:
        raise UsageError(str(error)) from None
    options = with_keys(with_agent_options(options, specs), specs, key_of)
    if (observe := read_protocol(options.protocol).observe) != "text":
        for name, spec in specs.items():
            policy = (policies or {}).get(name) or unloaded(spec, options, name)
            if not getattr(policy, "takes_images", False):
                raise UsageError(
                    f"agent {name!r} reads text, and observe = {observe} shows pictures; accepted: models behind "
                    "servers that take images (openai:MODEL, litellm:PROVIDER/MODEL), random, blind, and your own "
                    "player with takes_images = True; or leave --observe out"
                )
    told = {"protocol": options.protocol, "moves": options.moves}  # which options of the agents may have decided
    choice = choice._replace(scenarios=played_by(told, choice.scenarios))
    for scenario in choice.scenarios.values():
        try:  # a game that doesn't tell what a forfeit costs, if unreadable answers forfeit
            EpisodeRules.checked(scenario.game(), scenario.horizon, 0.0, read_protocol(options.protocol).invalid_action)
        except ValueError as error:
            raise UsageError(f"{scenario.name} can't be played with --protocol {options.protocol}: {error}") from None
    players = Players([AgentSpec.parse(text) for text in options.agents], options, policies)
    without = left_out(players, choice, named="agents" in options.given, say=say)
    plan = Plan.of(tuple(players.specs), choice.scenarios, options.episodes, options.seed_offset, without)
    return PlannedRun(options, players, first_plan(plan, options) if options.grows else plan)


class Choice(NamedTuple):
    """The scenarios that a run plays, and which of them were asked for by name."""

    scenarios: dict[str, Scenario]  # by name, in the order of the table
    named: frozenset[str]  # those that were asked for by their own names, and not as a part of a suite


def choose_scenarios(options: RunOptions) -> Choice:
    """Return the scenarios of ``--scenario`` and ``--suite`` together; the default ones only if neither is given."""
    names = options.scenarios if "scenarios" in options.given or not options.suites else ()
    inside = [name for suite in options.suites for name in find_suite(suite)]
    if options.suites and not names and not inside:
        raise UsageError(f"the suite {options.suites[0]!r} has no scenarios in this version of textbench")
    chosen = {name: with_settings(one, options.settings) for name, one in find_scenarios([*names, *inside]).items()}
    named = frozenset(chosen[name].name for name in names if name in chosen)
    found = {scenario.name: scenario for scenario in chosen.values()}
    return Choice(played_by({"protocol": options.protocol, "moves": options.moves}, found), named)


def with_levels(choice: Choice, options: RunOptions, say: Say) -> Choice:
    """Put the levels of ``--level`` or ``--levels`` in place of the scenarios; ``say`` is told which have none."""
    if options.levels is not None:
        for name in ("level", "until"):
            if getattr(options, name) is not None:
                raise UsageError(f"--levels {options.levels} finds each agent's level: give it without --{name}")
        wanted = levels_in(options.levels)
    elif options.level:
        wanted = range(options.level, options.level + 1)
    else:
        return choice
    for scenario in choice.scenarios.values():
        if (levels := scenario.levels) and wanted[-1] > len(levels):
            raise UsageError(f"{scenario.name} has the levels 1 to {len(levels)}, got {wanted[-1]}")
    versions = {name: [one.level(k) for k in wanted] for name, one in choice.scenarios.items() if one.levels}
    known = ", ".join(name for name, scenario in SCENARIOS.items() if scenario.levels)
    return _in_place(choice, versions, "levels", f"; scenarios that have some: {known}", say)


def with_twins(choice: Choice, options: RunOptions, say: Say) -> Choice:
    """Put the twin of ``--twin`` in place of the scenarios, or those of ``--twins`` behind each."""
    if options.twin is not None and options.twins is not None:
        raise UsageError(
            f"--twin {options.twin} plays one twin alone, --twins {options.twins} several: give one of them"
        )
    if not options.twin and options.twins is None:
        return choice
    numbers = (options.twin,) if options.twin is not None else range((options.twins or 0) + 1)  # 0: the game itself
    versions = {name: [one.twin(k) for k in numbers] for name, one in choice.scenarios.items() if one.has_twins}
    advice, kept = ", because they have no vocabulary; see docs/twins.md", options.twins is not None
    return _in_place(choice, versions, "twins", advice, say, "played as they are, without a twin gap" if kept else "")


def _in_place(
    choice: Choice, versions: Mapping[str, Sequence[Scenario]], what: str, advice: str, say: Say, kept: str = ""
) -> Choice:
    """Put the versions of each scenario in its place; those without any are ``kept``, or else left out."""
    without = [name for name in choice.scenarios if name not in versions]
    if not versions:
        raise UsageError(f"there are no {what} of {', '.join(without)}{advice}")
    if without:
        say(f"these have no {what} and are {kept or 'not played'}: {', '.join(without)}")
    found = {name: versions.get(name, [one] if kept else []) for name, one in choice.scenarios.items()}
    named = frozenset(one.name for name in choice.named for one in found[name])
    return Choice({one.name: one for several in found.values() for one in several}, named)


def default_agents(scenarios: Iterable[Scenario]) -> list[str]:
    """Return the agents of a run that names none; models of one scenario are among them if nothing else is played."""
    scenarios = list(scenarios)
    searched = any(find_search_player(scenario.game()) is not None for scenario in scenarios)
    asked = {scenario.name for scenario in scenarios}
    models = [name for name in embedded_models() if len(READS[name]) > 1 or asked <= set(READS[name])]
    alone = any(len(scenario.game().players) == 1 for scenario in scenarios)
    return ["random", *(("blind",) if alone else ()), *(("greedy", "planner") if searched else ()), *models]


def left_out(players: Players, choice: Choice, *, named: bool, say: Say) -> frozenset[tuple[str, str]]:
    """Return the pairs (agent, scenario) that can't be played; refuses those that the user has ``named``."""
    without: dict[str, tuple[str, ...]] = {}
    for name in players.specs:
        reasons = _reasons(players, name, choice.scenarios)
        asked = [one for one in reasons if one in choice.named or len(reasons) == len(choice.scenarios)]
        if named and asked:
            raise UsageError(f"agent {name!r} on {asked[0]}: {reasons[asked[0]]}")
        without[name] = tuple(reasons)
    for scenarios in dict.fromkeys(missing for missing in without.values() if missing):
        agents = [name for name, missing in without.items() if missing == scenarios]
        say(f"not played by {' and '.join(agents)}, who can't play these games: {', '.join(scenarios)}")
    return frozenset((name, scenario) for name, missing in without.items() for scenario in missing)


def _reasons(players: Players, agent: str, scenarios: Mapping[str, Scenario]) -> dict[str, str]:
    """Return ``{scenario: why the agent can't play it}``; an agent that can't be made is reported later."""
    spec, policy = players.specs[agent].spec, players.policies.get(agent)
    try:
        if policy is None and models_inside(spec):  # a model may be large, and what it plays is known without it
            legal = players.options.legal_only
            told = {name: why_not_legal_only(one.game()) if legal else None for name, one in scenarios.items()}
        else:
            policy = load_policy(spec, players.options, agent) if policy is None else policy
            told = {name: why_not_played(policy, scenario) for name, scenario in scenarios.items()}
    except (UsageError, ValueError, ImportError):
        return {}
    return {name: reason for name, reason in told.items() if reason is not None}
