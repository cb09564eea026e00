from .analysis.action_probabilities import action_probabilities, response_logprobs
from .baselines.search import PlannerPlayer
from .episode import Episode, EpisodeStart, EpisodeTask, Step
from .load import BASELINES, load_agent, runs_program
from .loop.rollout import rollout
from .loop.session import EpisodeSession
from .models.base import AsyncLanguageModel, Decoding, LanguageModel
from .models.cache import ResponseCache
from .models.scripted import ScriptedModel
from .opponent import opponent
from .policy import LanguageAgentPolicy
from .prompt import PromptMap
from .prompt_texts import PromptTexts, wording_of
from .turn import AsyncPolicy, Message, Policy, Turn, TurnRequest, Usage, request_in
from .wrappers import innermost

__all__ = [
    "BASELINES",
    "AsyncLanguageModel",
    "AsyncPolicy",
    "Decoding",
    "Episode",
    "EpisodeSession",
    "EpisodeStart",
    "EpisodeTask",
    "LanguageAgentPolicy",
    "LanguageModel",
    "Message",
    "PlannerPlayer",
    "Policy",
    "PromptMap",
    "PromptTexts",
    "ResponseCache",
    "ScriptedModel",
    "Step",
    "Turn",
    "TurnRequest",
    "Usage",
    "action_probabilities",
    "innermost",
    "load_agent",
    "opponent",
    "request_in",
    "response_logprobs",
    "rollout",
    "runs_program",
    "wording_of",
]
