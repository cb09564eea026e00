"""What there is: the suites and scenarios, the kinds of agents, and what each of these needs before it can run here."""

from typing import Any, NamedTuple

from agents.baselines.search import find_search_player
from agents.load import baselines, registered_agents
from agents.models.provider import Provider, providers
from agents.wrappers import form_of, wrappers
from benchmark.runs.plan import num_players, scenario_to_json
from textgames.scenarios import SCENARIOS, SUITES, Scenario
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
    """Return the models that a provider knows by themselves, and its form ``NAME:MODEL`` if it takes others."""
    kinds = []
    specs = [spec for spec, model in provider.models.items() if spec == model]
    for spec in [*specs, *([f"{name}:{provider.takes}"] if provider.takes else [])]:
        model, made_for = provider.models.get(spec, ""), ""
        card = provider.card(model) if model else None
        if (reads := provider.reads(model)) is not None:
            made_for = f"; reads {', '.join(reads)} alone"
        elif card is not None and card.scenarios:
            made_for = f"; trained on {', '.join(card.scenarios)}"
        kinds.append(AgentKind(spec, provider.description + made_for, provider.missing()))
    return kinds


def scenario_facts() -> dict[str, dict[str, Any]]:
    """Return the definition of every scenario for lists, with ``players``, ``yardstick`` and ``suites``."""
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
