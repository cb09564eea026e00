from .analysis.action_probabilities import action_probabilities, response_logprobs
from .baselines.search import PlannerPlayer, SearchPlayer, SearchPlayers, find_search_player, search_player_of
from .episode import Episode, EpisodeStart, EpisodeTask, Step
from .load import Baseline, check_spec, holds_programs, known_options, load_agent, options_taken, runs_program, type_of
from .loop.rollout import rollout
from .loop.session import EpisodeSession
from .models.base import AsyncLanguageModel, Decoding, LanguageModel
from .models.cache import ResponseCache
from .models.scripted import ScriptedModel
from .opponent import opponent
from .policy import LanguageAgentPolicy, as_requests, lists_actions
from .prompt import PromptMap, as_text
from .prompt_texts import PromptTexts, prompt_path, wording_of
from .protocol import read_protocol
from .turn import AsyncPolicy, Message, Policy, Prompt, Turn, TurnRequest, Usage, own_action_help, prefix_of, request_in
from .wrappers import (
    Around,
    Deciding,
    Question,
    Wrapper,
    action_named,
    innermost,
    models_inside,
    questions,
    wrapped_in,
    wrapper,
)

__all__ = [
    "Around",
    "AsyncLanguageModel",
    "AsyncPolicy",
    "Baseline",
    "Deciding",
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
    "Prompt",
    "PromptMap",
    "PromptTexts",
    "Question",
    "ResponseCache",
    "ScriptedModel",
    "SearchPlayer",
    "SearchPlayers",
    "Step",
    "Turn",
    "TurnRequest",
    "Usage",
    "Wrapper",
    "action_named",
    "action_probabilities",
    "as_requests",
    "as_text",
    "check_spec",
    "find_search_player",
    "holds_programs",
    "innermost",
    "known_options",
    "lists_actions",
    "load_agent",
    "models_inside",
    "opponent",
    "options_taken",
    "own_action_help",
    "prefix_of",
    "prompt_path",
    "questions",
    "read_protocol",
    "request_in",
    "response_logprobs",
    "rollout",
    "runs_program",
    "search_player_of",
    "type_of",
    "wording_of",
    "wrapped_in",
    "wrapper",
]
