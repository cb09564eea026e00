"""How much a language model would be sent in an agent's place, and how much it may answer: for estimates of a run."""

from collections.abc import Iterator
from typing import Any

from agents.episode import Episode
from agents.models.base import Decoding
from agents.models.served.dialect import REASONING_TOKENS
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.turn import TurnRequest
from benchmark.play.agents.players import unloaded
from benchmark.play.options import RunOptions
from textgames.scenarios import Scenario

LETTERS_PER_TOKEN = 4  # of English text, as tokenizers of language models usually have it


def prompt_letters(episode: Episode, scenario: Scenario, prompt_map: PromptMap) -> Iterator[tuple[str, int]]:
    """Who made each decision, and how many letters a language model's prompt would have had in its place."""
    game = scenario.game()
    told: dict[str, list[tuple[str, str]]] = {player: [] for player in game.players}
    for step in episode.steps:
        request = TurnRequest(
            observation=step.observation,
            instructions=game.instructions(step.player),
            legal_actions=getattr(game, "actions", ()),
            history=tuple(told[step.player]),
            player=step.player,
            steps_left=scenario.horizon - step.index,
            seed=(episode.seed,),
        )
        told[step.player].append((step.observation, step.turn.response))
        yield step.player, len(as_text(prompt_map(request)))


def _option(name: str, option: str, options: RunOptions) -> Any:
    """Return an option of an agent: its own, or the run's."""
    return options.by_agent.get(name, {}).get(option, getattr(options, option, None))


def planned_prompts(name: str, spec: str, options: RunOptions) -> PromptMap:
    """Return what an agent is asked with; a wrapper whose models may have prompts of their own, as far as options
    say."""
    policy: Any = unloaded(spec, options, name)
    if isinstance(policy, LanguageAgentPolicy):
        return policy.prompt_map
    mode, history = _option(name, "mode", options) or PromptMap.mode, _option(name, "history", options) or 0
    prompts = _option(name, "prompts", options)
    return PromptMap(mode, history) if prompts is None else PromptMap.from_file(prompts, mode, history)


def longest_answer(name: str, options: RunOptions) -> int:
    """Return the tokens of an agent's response at most, its reasoning included."""
    effort, reasoning = (_option(name, option, options) for option in ("reasoning_effort", "reasoning_tokens"))
    if reasoning is None:  # a budget of its own goes before what an effort reserves
        reasoning = _option(name, "thinking_budget", options)
    if reasoning is None:
        reasoning = REASONING_TOKENS if effort not in (None, "none") else 0
    return int(_option(name, "max_tokens", options) or Decoding().max_tokens) + int(reasoning)
