"""Which kinds of agents there are, and what each needs before it can run here."""

import os
from importlib.metadata import entry_points
from typing import NamedTuple

from agents.extras import missing_packages
from agents.load import ENTRY_POINT_GROUP
from benchmark.play.players import embedded_models


class AgentKind(NamedTuple):
    """One kind of agent.

    Attributes:
        spec: what ``--agent`` takes.
        text: what it is.
        missing: what has to be done before it can run; ``None`` when it can.
    """

    spec: str
    text: str
    missing: str | None = None


def agent_kinds() -> list[AgentKind]:
    """Every kind of agent, those that need nothing first."""
    return [
        AgentKind("random", "any legal action, uniformly"),
        AgentKind("greedy", "one step ahead"),
        AgentKind("planner", "search: exact on Frozen Lake, look-ahead on Snake"),
        AgentKind("human", "a person at this terminal: textbench play SCENARIO"),
        *_embedded(),
        AgentKind(
            "hf:PATH_OR_REPO",
            "a Hugging Face model in this process",
            missing_packages("torch", "transformers", extra="local"),
        ),
        AgentKind("openai:MODEL", "a model behind an OpenAI-compatible server", _needs_server()),
        AgentKind("vllm:PATH_OR_REPO", "a model in a vLLM engine, on a GPU", missing_packages("vllm", extra="vllm")),
        AgentKind("MODULE:ATTRIBUTE", "a policy of your own, importable from here"),
        *(AgentKind(point.name, f"from {point.value}") for point in entry_points(group=ENTRY_POINT_GROUP)),
    ]


def _embedded() -> list[AgentKind]:
    names = embedded_models() or ["tiny", "tiny-msgrpo-frozen-lake", "tiny-msgrpo-snake"]
    missing = missing_packages("torch", "transformers", extra="local")
    if missing is None and not embedded_models():
        missing = "not shipped with this version"
    return [AgentKind(name, "a very small language model that ships with textbench", missing) for name in names]


def _needs_server() -> str | None:
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return None
    return "a key (export OPENAI_API_KEY=...) or a server of your own (--base-url http://127.0.0.1:8000/v1)"
