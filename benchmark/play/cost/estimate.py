"""What a run would take in tokens and money, estimated before it is started: ``--dry-run``.

The random player plays a few episodes of every scenario: its decisions, and the letters of the prompts that a language
model would get in its place, stand for the agent's. The most that an agent may take is another reckoning.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.models.provider import find_model
from agents.models.served.dialect import REASONING_TOKENS
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.protocol import answers_at_most
from agents.turn import TurnRequest
from agents.wrappers import innermost, questions
from benchmark.errors import BenchmarkError
from benchmark.play.agents.options import AgentSpec
from benchmark.play.agents.players import unloaded
from benchmark.play.cost.prices import agent_prices, is_paid
from benchmark.play.options import RunOptions
from benchmark.play.until import longest_plan
from benchmark.runs.manifest import Price
from benchmark.runs.plan import Plan
from benchmark.score.scores import cost
from textgames import GameError
from textgames.scenarios import Scenario

PILOT_EPISODES = 3  # of the random player in every scenario
LETTERS_PER_TOKEN = 4  # of English text, as tokenizers of language models usually have it
TOKENS_PER_SECOND = 50  # of an answer: a common speed of models behind servers


class Estimate(NamedTuple):
    """The tokens and the money that one agent's episodes would take."""

    agent: str
    decisions: int  # as many as the random player needs
    prompt_tokens: int
    prompt_tokens_at_most: int
    completion_tokens_at_most: int
    price: Price | None  # ``None`` if it isn't known
    cost_at_least: float | None  # US dollars, of the prompts alone, of episodes as short as the shortest
    cost_of_prompts: float | None
    cost_at_most: float | None


def estimate(plan: Plan, specs: Mapping[str, str], options: RunOptions) -> list[Estimate]:
    """Estimate every agent of ``{agent: spec}`` whose tokens may cost money."""
    pilots: dict[tuple[str, str], list[Seat]] = {}
    estimates = []
    for name, spec in specs.items():
        asked = [(find_model(one), times) for one, times in questions(spec, options.by_agent.get(name, {})).items()]
        paid = [(found[1], times) for found, times in asked if found is not None and found[0].paid]
        if not paid:
            continue
        price = agent_prices([{"name": name, "spec": spec, "settings": {"model": paid[0][0]}}], options, {}).get(name)
        prompt_map, longest = _planned_prompts(name, spec, options), _longest_answer(name, options)
        decisions, taken = 0.0, np.zeros(4)  # prompt tokens of short episodes, of usual ones, at most; answers at most
        for matchup, seeds in plan.seeds.items():
            if name not in matchup.agents:
                continue
            scenario = plan.scenarios[matchup.scenario]
            key = matchup.scenario, repr(prompt_map)
            if key not in pilots:
                pilots[key] = _pilot(scenario, prompt_map)
            most_turns = scenario.horizon - 1  # before a decision, of which prompts show all or so many
            turns = min(most_turns if prompt_map.history_turns is None else prompt_map.history_turns, most_turns)
            answers = scenario.horizon * answers_at_most(scenario.protocol)
            for seat in (seat for agent, seat in zip(matchup.agents, pilots[key], strict=True) if agent == name):
                decisions += len(seeds) * seat.decisions
                shown = seat.longest_prompt + turns * (seat.longest_observation + longest)
                taken += len(seeds) * np.array([seat.fewest, seat.prompts, answers * shown, answers * longest])
        fewest, sent, sent_at_most, said_at_most = map(round, sum(times for _, times in paid) * taken)
        least, prompts, most = (
            None if price is None else cost(tokens, price)
            for tokens in ((fewest, 0), (sent, 0), (sent_at_most, said_at_most))
        )
        tokens = sent, sent_at_most, said_at_most
        estimates.append(Estimate(name, round(decisions), *tokens, price, least, prompts, most))
    return estimates


def spending(spec: str, plan: Plan, options: RunOptions) -> str:
    """Describe in brackets the episodes, tokens and costs of a paid model, ``spec``, in a run; empty for others."""
    agents = map(AgentSpec.parse, options.agents)
    own = {agent.name: agent.spec for agent in agents if spec in innermost(agent.spec)}
    if not own or not is_paid(spec):
        return ""
    if options.grows:
        plan = longest_plan(plan, options)
    episodes = sum(len(seeds) for matchup, seeds in plan.seeds.items() if own.keys() & set(matchup.agents))
    try:
        found = estimate(plan, own, replace(options, max_cost=None))
    except (BenchmarkError, GameError, ValueError, TypeError, AttributeError, ImportError):  # which playing it reports
        return f" ({episodes:,} episodes)"
    tokens = sum(one.prompt_tokens_at_most + one.completion_tokens_at_most for one in found)
    costs = [one.cost_at_most for one in found]
    price = "at a price that isn't known here" if None in costs else f"{sum(filter(None, costs)):.2f} USD"
    return f" ({episodes:,} episodes, at most {tokens:,} tokens: {price})"


class Seat(NamedTuple):
    """The needs of the random player at one seat, in tokens: on average over episodes, of the shortest, at most."""

    decisions: float
    fewest: float  # of the prompts of an episode with as few decisions as the shortest
    prompts: float  # of an episode
    longest_prompt: float
    longest_observation: float  # which a prompt may show of every earlier turn


def _pilot(scenario: Scenario, prompt_map: PromptMap) -> list[Seat]:
    game, policy = scenario.game(), load_agent("random")
    tasks = [EpisodeTask.of(scenario, scenario.first_seed + number) for number in range(PILOT_EPISODES)]
    prompts: dict[str, list[float]] = {player: [] for player in game.players}
    observations, lengths = dict.fromkeys(game.players, 0.0), list[Counter[str]]()
    for episode in rollout(dict.fromkeys(game.players, policy), tasks):
        lengths.append(Counter(step.player for step in episode.steps))
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
            prompts[step.player].append(len(as_text(prompt_map(request))) / LETTERS_PER_TOKEN)
            seen = len(step.observation) / LETTERS_PER_TOKEN
            observations[step.player] = max(observations[step.player], seen)
    return [
        Seat(
            len(own) / PILOT_EPISODES,
            sum(own) / max(1, len(own)) * min(length[player] for length in lengths),
            sum(own) / PILOT_EPISODES,
            max(own, default=0.0),
            observations[player],
        )
        for player, own in prompts.items()
    ]


def _option(name: str, option: str, options: RunOptions) -> Any:
    return options.by_agent.get(name, {}).get(option, getattr(options, option, None))


def _planned_prompts(name: str, spec: str, options: RunOptions) -> PromptMap:
    """Return the prompts of an agent; those of a wrapper, whose models may have their own, as far as options say."""
    policy: Any = unloaded(spec, options, name)
    if isinstance(policy, LanguageAgentPolicy):
        return policy.prompt_map
    mode, history = _option(name, "mode", options) or PromptMap.mode, _option(name, "history", options) or 0
    prompts = _option(name, "prompts", options)
    return PromptMap(mode, history) if prompts is None else PromptMap.from_file(prompts, mode, history)


def _longest_answer(name: str, options: RunOptions) -> int:
    """Return the tokens of an agent's response at most, its reasoning included."""
    effort, reasoning = (_option(name, option, options) for option in ("reasoning_effort", "reasoning_tokens"))
    if reasoning is None:  # a budget of its own goes before what an effort reserves
        reasoning = _option(name, "thinking_budget", options)
    if reasoning is None:
        reasoning = REASONING_TOKENS if effort not in (None, "none") else 0
    return int(_option(name, "max_tokens", options) or Decoding().max_tokens) + int(reasoning)
