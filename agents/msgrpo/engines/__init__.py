"""Engines that rollouts are sampled from: the live model, a copy of it, or one that is sent new weights.

An engine is a class of options with ``build(parts) -> Engine`` (:mod:`agents.msgrpo.engines.engine`) and a name; its
options stand in ``engine_options``.
"""

from typing import TYPE_CHECKING, Any, Protocol

from agents.msgrpo.plugins import Method, Registry

if TYPE_CHECKING:
    from agents.msgrpo.engines.engine import Engine, EngineParts


class EngineOptions(Method, Protocol):
    """The options of one kind of engine; ``check(urls)`` may refuse servers, or a machine without its package."""

    def build(self, parts: "EngineParts") -> "Engine":
        """Return the engine of a run, which is sent weights before it is asked for anything."""


ENGINES: Registry[EngineOptions] = Registry(
    "engine_options",
    {
        "live": "agents.msgrpo.engines.live:Live",
        "vllm": "agents.msgrpo.engines.vllm:VLLM",
        "ray": "agents.msgrpo.engines.ray:Ray",
    },
    setting="engine",
)

register_engine: Any = ENGINES.register
