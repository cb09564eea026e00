"""Engines that rollouts are sampled from: the live model, a copy of it, or one that is sent new weights.

An engine is a class of options with a name. Its ``build(parts) -> Engine`` (:mod:`agents.msgrpo.engines.engine`) makes
the engine of a run, which is sent weights before it is asked for anything; ``check(urls)`` may refuse servers, or a
machine without its package. The options stand in ``engine_options``.
"""

from typing import Any

from agents.msgrpo.plugins import Registry

ENGINES: Registry[Any] = Registry(
    "engine_options",
    {
        "live": "agents.msgrpo.engines.live:Live",
        "vllm": "agents.msgrpo.engines.vllm:VLLM",
        "ray": "agents.msgrpo.engines.ray:Ray",
    },
    setting="engine",
)

register_engine: Any = ENGINES.register
