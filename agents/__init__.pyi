from .episode import Episode, EpisodeTask, Step
from .load import load_agent
from .loop.rollout import rollout
from .loop.session import EpisodeSession
from .models.base import AsyncLanguageModel, Decoding, LanguageModel
from .models.cache import ResponseCache
from .models.scripted import ScriptedModel
from .opponent import opponent
from .policy import LanguageAgentPolicy
from .prompt import PromptMap
from .prompt_texts import PromptTexts
from .turn import AsyncPolicy, Message, Policy, Turn, TurnRequest, Usage

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
    "opponent",
    "rollout",
]
