"""Players of text games: language-agent policies, baselines, and the loop that plays them.

``request -> prompt -> model -> response``, and ``policies + tasks -> episodes``. Start reading at :mod:`agents.turn`.
Names are imported when they are first used, so ``import agents`` loads neither torch nor an API client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.episode import Episode, EpisodeTask, Step
    from agents.load import load_agent
    from agents.loop.rollout import rollout
    from agents.loop.session import EpisodeSession
    from agents.models.base import AsyncLanguageModel, Decoding, LanguageModel
    from agents.models.cache import ResponseCache
    from agents.models.scripted import ScriptedModel
    from agents.policy import LanguageAgentPolicy
    from agents.prompt import PromptMap, PromptTexts
    from agents.turn import AsyncPolicy, Message, Policy, Turn, TurnRequest, Usage

_NAMES = {
    "agents.episode": ("Episode", "EpisodeTask", "Step"),
    "agents.load": ("load_agent",),
    "agents.loop.rollout": ("rollout",),
    "agents.loop.session": ("EpisodeSession",),
    "agents.models.base": ("AsyncLanguageModel", "Decoding", "LanguageModel"),
    "agents.models.cache": ("ResponseCache",),
    "agents.models.scripted": ("ScriptedModel",),
    "agents.policy": ("LanguageAgentPolicy",),
    "agents.prompt": ("PromptMap", "PromptTexts"),
    "agents.turn": ("AsyncPolicy", "Message", "Policy", "Turn", "TurnRequest", "Usage"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AsyncLanguageModel",
    "AsyncPolicy",
    "Decoding",
    "Episode",
    "EpisodeSession",
    "EpisodeTask",
    "LanguageAgentPolicy",
    "LanguageModel",
    "Message",
    "Policy",
    "PromptMap",
    "PromptTexts",
    "ResponseCache",
    "ScriptedModel",
    "Step",
    "Turn",
    "TurnRequest",
    "Usage",
    "load_agent",
    "rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
