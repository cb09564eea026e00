"""What rollouts are sampled from: the live model, a copy of it, or an engine that is sent new weights.

An engine is a class of options with ``build(parts) -> Engine`` (:mod:`agents.msgrpo.engines.engine`) and a name;
``register_engine("name")`` adds one from outside, and ``engine = "name"`` or ``engine = "my_module:MyEngine"`` uses it.
Its options stand in ``engine_options``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agents.msgrpo.plugins import Configurable, Registry

if TYPE_CHECKING:
    from agents.msgrpo.engines.engine import Engine, EngineParts


class EngineCheck(Configurable, Protocol):
    """The part that the options of an engine may leave out."""

    def check(self, urls: Sequence[str]) -> None:
        """Refuse servers at ``urls``, or a machine without the engine's package, before a model is made.

        Raises:
            ConfigError: the options can't be used with these servers.
            ModuleNotFoundError: the package isn't installed; the message has the command.
        """
        return None  # noqa: RET501 - a part with an empty body would count as abstract


class EngineOptions(EngineCheck, Protocol):
    """The options of one kind of engine, and how one is made of them."""

    def build(self, parts: "EngineParts") -> "Engine":
        """Return the engine of a run, which is sent weights before it is asked for anything.

        Raises:
            ConfigError: it can't run with these settings or this model.
            ModuleNotFoundError: its package isn't installed; the message has the command.
        """


ENGINES: Registry[EngineOptions] = Registry(
    "engine_options",
    {
        "live": "agents.msgrpo.engines.live:Live",
        "vllm": "agents.msgrpo.engines.vllm:VLLM",
        "ray": "agents.msgrpo.engines.ray:Ray",
    },
    setting="engine",
    optional=EngineCheck,
)

register_engine: Any = ENGINES.register
