"""Which kinds of agents there are, and what each needs before it can run here."""

from typing import NamedTuple

from agents.load import BASELINES, registered_agents
from agents.models.provider import Provider, providers


class AgentKind(NamedTuple):
    """One kind of agent."""

    spec: str  # what ``--agent`` takes
    text: str  # what it is
    missing: str | None = None  # what has to be done before it can run; ``None`` when it can


def agent_kinds() -> list[AgentKind]:
    """Every kind of agent, those that need nothing first."""
    return [
        *(AgentKind(name, baseline.description) for name, baseline in BASELINES.items()),
        *(kind for name, provider in providers().items() for kind in _kinds_of(name, provider)),
        AgentKind("MODULE:ATTRIBUTE", "a policy of your own, importable from here"),
        *(AgentKind(name, f"from {entry.value}") for name, entry in registered_agents().items()),
    ]


def _kinds_of(name: str, provider: Provider) -> list[AgentKind]:
    """The models that a provider knows by themselves, or else its form ``NAME:MODEL``."""
    specs = [spec for spec, model in provider.models.items() if spec == model] or [f"{name}:{provider.takes}"]
    return [AgentKind(spec, provider.description, provider.missing()) for spec in specs]
