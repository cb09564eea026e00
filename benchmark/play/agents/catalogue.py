"""What there is: the suites and scenarios, the kinds of agents, and what each of those needs before it can run here."""

from typing import Any, NamedTuple

from agents.baselines.search import find_search_player
from agents.load import baselines, registered_agents
from agents.models.provider import Provider, providers
from agents.wrappers import form_of, wrappers
from benchmark.runs.plan import num_players, scenario_to_json
from textgames.scenarios import ABOUT_SUITES, SCENARIOS, SUITES, Scenario
from textgames.yardsticks import find_yardstick


class AgentKind(NamedTuple):
    """One kind of agent, as lists show it."""

    spec: str  # what ``--agent`` takes
    text: str  # what it is
    missing: str | None = None  # what has to be done before it can run; ``None`` when it can


def agent_kinds() -> list[AgentKind]:
    """Return every kind of agent, those that need nothing first."""
    return [
        *(AgentKind(one.spec(name), one.description, one.missing()) for name, one in baselines().items()),
        *(kind for name, provider in providers().items() for kind in _kinds_of(name, provider)),
        *(AgentKind(form_of(name), one.description) for name, one in wrappers().items()),
        AgentKind("MODULE:ATTRIBUTE", "a policy of your own, importable from here"),
        *(AgentKind(name, f"from {entry.value}") for name, entry in registered_agents().items()),
    ]


def _kinds_of(name: str, provider: Provider) -> list[AgentKind]:
    """Return the models that a provider knows by themselves, and its form ``NAME:MODEL`` where it takes others."""
    specs = [spec for spec, model in provider.models.items() if spec == model]
    specs += [f"{name}:{provider.takes}"] if provider.takes else []
    return [AgentKind(spec, provider.description + _made_for(provider, spec), provider.missing()) for spec in specs]


def _made_for(provider: Provider, spec: str) -> str:
    """Return what a model that was made for a few games says of itself in lists, so that nobody takes it for others."""
    model = provider.models.get(spec, "")
    if (reads := provider.reads(model)) is not None:
        return f"; reads {', '.join(reads)} alone"
    card = provider.card(model) if model else None
    return f"; trained on {', '.join(card.scenarios)}" if card is not None and card.scenarios else ""


def suite_facts() -> dict[str, dict[str, Any]]:
    """Return what lists say of every suite: ``{suite: {"about", "scenarios"}}``."""
    return {name: {"about": ABOUT_SUITES[name], "scenarios": list(names)} for name, names in SUITES.items()}


def scenario_facts() -> dict[str, dict[str, Any]]:
    """Return what lists say of every scenario: its definition, with ``players``, ``yardstick`` and ``suites``."""
    return {
        name: {
            **scenario_to_json(scenario),
            "players": num_players(scenario),
            "yardstick": yardstick_of(scenario),
            "suites": [suite for suite, names in SUITES.items() if name in names],
        }
        for name, scenario in SCENARIOS.items()
    }


def yardstick_of(scenario: Scenario) -> str:
    """Return how the value of best play is known: ``"exact (value iteration)"``, ``"planner (search)"`` or ``""``."""
    game = scenario.game()
    player, yardstick = find_search_player(game), find_yardstick(game)
    for known in (player, yardstick):
        if known is not None and known.exact:
            return f"exact ({known.method})"
    return "planner (search)" if player is not None else ""
