"""What a run would take in tokens and money, estimated before it is started: ``--dry-run``.

The random player plays a few episodes of every scenario: its decisions, and the letters of the prompts that a language
model would get in its place, stand for the agent's. The most that an agent may take is another reckoning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

from agents.episode import Episode, EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import DEFAULT_CONCURRENCY, rollout
from agents.models.base import Decoding
from agents.models.provider import find_model
from agents.models.served.dialect import REASONING_TOKENS
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.protocol import answers_at_most
from agents.turn import TurnRequest
from agents.wrappers import innermost, questions
from benchmark.errors import BenchmarkError
from benchmark.play.agents.objects import AgentSpec
from benchmark.play.agents.players import unloaded
from benchmark.play.cost.prices import agent_prices, is_paid
from benchmark.play.options import RunOptions, levels_in
from benchmark.runs.manifest import Price
from benchmark.runs.plan import Plan
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
    cost_of_prompts: float | None  # US dollars
    cost_at_most: float | None


class Total(NamedTuple):
    """The costs of all agents whose tokens may cost money together; pairs are the least and the most."""

    cost: tuple[float, float] | None  # US dollars; ``None`` if the price of one isn't known
    hours: tuple[float, float]  # if every answer is as long as it may be


def total_of(
    tokens: Mapping[str, tuple[tuple[float, float], tuple[float, float]]],
    prices: Mapping[str, Price | None],
    options: RunOptions,
) -> Total:
    """Add up ``{agent: ((prompt, completion) tokens at least, the same at most)}`` of agents that may cost money."""
    in_flight = options.max_concurrency or DEFAULT_CONCURRENCY
    costs, hours = [0.0, 0.0], [0.0, 0.0]
    for agent, pair in tokens.items():
        price = prices[agent] or {"input": 0.0, "output": 0.0}
        for end, (sent, answered) in enumerate(pair):
            costs[end] += (sent * price["input"] + answered * price["output"]) / 1e6
            hours[end] += answered / TOKENS_PER_SECOND / in_flight / 3600
    known = all(prices[agent] is not None for agent in tokens)
    return Total((costs[0], costs[1]) if known else None, (hours[0], hours[1]))


def paid_prices(specs: Mapping[str, str], options: RunOptions) -> dict[str, Price | None]:
    """Return the price of every agent whose tokens may cost money, ``None`` if it isn't known."""
    asked = {name: _paid_questions(spec, options.by_agent.get(name, {})) for name, spec in specs.items()}
    models = {name: next(iter(own)) for name, own in asked.items() if own}
    cards = [{"name": name, "spec": specs[name], "settings": {"model": model}} for name, model in models.items()]
    found = agent_prices(cards, options, {})
    return {name: found.get(name) for name in models}


def _paid_questions(spec: str, own: Mapping[str, Any]) -> dict[str, int]:
    """Return ``{model: how often it is asked for one decision at most}`` of the models whose tokens may cost money."""
    asked = [(find_model(one), times) for one, times in questions(spec, own).items()]
    return {found[1]: times for found, times in asked if found is not None and found[0].paid}


class Seat(NamedTuple):
    """The needs of the random player at one seat, on average over episodes."""

    decisions: float
    prompt_letters: float
    longest_prompt: int  # in letters, of any of its decisions
    longest_observation: int  # likewise, which a prompt may show of every earlier turn


def estimate(plan: Plan, specs: Mapping[str, str], options: RunOptions) -> list[Estimate]:
    """Estimate every agent of ``{agent: spec}`` whose tokens may cost money."""
    pilots: dict[tuple[str, str], list[Seat]] = {}
    estimates = []
    for name, price in paid_prices(specs, options).items():
        decisions = letters = most_answers = most_prompts = 0.0
        prompt_map, longest = planned_prompts(name, specs[name], options), longest_answer(name, options)
        for matchup, seeds in plan.seeds.items():
            if name not in matchup.agents:
                continue
            scenario = plan.scenarios[matchup.scenario]
            key = matchup.scenario, repr(prompt_map)
            if key not in pilots:
                pilots[key] = _pilot(scenario, prompt_map)
            most_turns = scenario.horizon - 1  # before a decision, of which prompts show all or so many
            turns = min(most_turns if prompt_map.history_turns is None else prompt_map.history_turns, most_turns)
            answers = len(seeds) * scenario.horizon * answers_at_most(scenario.protocol)
            for seat in (seat for agent, seat in zip(matchup.agents, pilots[key], strict=True) if agent == name):
                decisions += len(seeds) * seat.decisions
                letters += len(seeds) * seat.prompt_letters
                most_answers += answers
                shown = seat.longest_prompt + turns * seat.longest_observation
                most_prompts += answers * (shown / LETTERS_PER_TOKEN + turns * longest)
        times = sum(_paid_questions(specs[name], options.by_agent.get(name, {})).values())
        tokens = [times * each for each in (letters / LETTERS_PER_TOKEN, most_prompts, most_answers * longest)]
        prompts = most = None
        if price is not None:
            prompts = tokens[0] * price["input"] / 1e6
            most = (tokens[1] * price["input"] + tokens[2] * price["output"]) / 1e6
        sent, sent_at_most, said_at_most = map(round, tokens)
        estimates.append(Estimate(name, round(decisions), sent, sent_at_most, said_at_most, price, prompts, most))
    return estimates


def spending(spec: str, plan: Plan, options: RunOptions) -> str:
    """Describe in brackets the episodes, tokens and costs of a paid model, ``spec``, in a run; empty for others."""
    agents = map(AgentSpec.parse, options.agents)
    own = {agent.name: agent.spec for agent in agents if spec in innermost(agent.spec)}
    if not own or not is_paid(spec):
        return ""
    if options.grows:
        levels = 1 if options.levels is None else len(levels_in(options.levels))
        plan = plan.with_episodes(ceil(options.episodes / levels), options.seed_offset)
    episodes = sum(len(seeds) for matchup, seeds in plan.seeds.items() if own.keys() & set(matchup.agents))
    try:
        found = estimate(plan, own, replace(options, max_cost=None))
    except (BenchmarkError, GameError, ValueError, TypeError, AttributeError, ImportError):  # which playing it reports
        return f" ({episodes:,} episodes)"
    tokens = sum(one.prompt_tokens_at_most + one.completion_tokens_at_most for one in found)
    costs = [one.cost_at_most for one in found]
    price = "at a price that isn't known here" if None in costs else f"{sum(filter(None, costs)):.2f} USD"
    return f" ({episodes:,} episodes, at most {tokens:,} tokens: {price})"


def _pilot(scenario: Scenario, prompt_map: PromptMap) -> list[Seat]:
    game, policy = scenario.game(), load_agent("random")
    tasks = [EpisodeTask.of(scenario, scenario.first_seed + number) for number in range(PILOT_EPISODES)]
    prompts: dict[str, list[int]] = {player: [] for player in game.players}
    observations = dict.fromkeys(game.players, 0)
    for episode in rollout(dict.fromkeys(game.players, policy), tasks):
        for step, (player, length) in zip(episode.steps, prompt_letters(episode, scenario, prompt_map), strict=True):
            prompts[player].append(length)
            observations[player] = max(observations[player], len(step.observation))
    return [
        Seat(len(own) / PILOT_EPISODES, sum(own) / PILOT_EPISODES, max(own, default=0), observations[player])
        for player, own in prompts.items()
    ]


def prompt_letters(episode: Episode, scenario: Scenario, prompt_map: PromptMap) -> Iterator[tuple[str, int]]:
    """Yield who made each decision, and how many letters a language model's prompt would have had in its place."""
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
    return options.by_agent.get(name, {}).get(option, getattr(options, option, None))


def planned_prompts(name: str, spec: str, options: RunOptions) -> PromptMap:
    """Return the prompts of an agent; those of a wrapper, whose models may have their own, as far as options say."""
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
