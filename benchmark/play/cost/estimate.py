"""What a run would take in tokens and money, estimated before it is started: ``--dry-run``.

Nobody knows how an agent plays before it has. The random player plays a few episodes of every scenario here, which
costs nothing: its decisions, and the letters of the prompts that a language model would get in its place, stand for the
agent's. Completions are an upper end, as if every response were as long as it may.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.models.provider import find_model
from agents.prompt import PromptMap
from agents.protocol import answers_at_most
from agents.wrappers import questions
from benchmark.play.cost.letters import LETTERS_PER_TOKEN, longest_answer, planned_prompts, prompt_letters
from benchmark.play.cost.prices import agent_prices
from benchmark.play.options import RunOptions
from benchmark.runs.manifest import Price
from benchmark.runs.plan import Plan
from textgames.scenarios import Scenario

PILOT_EPISODES = 3
"""Of the random player in every scenario."""


class Estimate(NamedTuple):
    """What one agent's episodes would take in tokens and in money."""

    agent: str
    decisions: int  # as many as the random player needs
    prompt_tokens: int
    completion_tokens_at_most: int
    price: Price | None  # ``None`` where nobody knows it
    cost_of_prompts: float | None  # US dollars
    cost_at_most: float | None


class Seat(NamedTuple):
    """What the random player needs at one seat, on average over episodes."""

    decisions: float
    prompt_letters: float


def estimate(plan: Plan, specs: Mapping[str, str], options: RunOptions) -> list[Estimate]:
    """What every agent would take whose tokens may cost money; the others aren't in it.

    Args:
        plan: of the run.
        specs: ``{agent: spec}``.
        options: of the run.

    Raises:
        UsageError: the price file is wrong, or the money is limited and nobody knows an agent's price.
    """
    asked = {name: _paid_questions(spec, options.by_agent.get(name, {})) for name, spec in specs.items()}
    models = {name: next(iter(own)) for name, own in asked.items() if own}
    cards = [{"name": name, "spec": specs[name], "settings": {"model": model}} for name, model in models.items()]
    prices = agent_prices(cards, options, {})
    pilots: dict[tuple[str, str], list[Seat]] = {}
    estimates = []
    for name in models:
        decisions = letters = 0.0
        prompt_map = planned_prompts(name, specs[name], options)
        for matchup, seeds in plan.seeds.items():
            if name not in matchup.agents:
                continue
            key = matchup.scenario, repr(prompt_map)
            if key not in pilots:
                pilots[key] = _pilot(plan.scenarios[matchup.scenario], prompt_map)
            for agent, seat in zip(matchup.agents, pilots[key], strict=True):
                if agent == name:
                    decisions += len(seeds) * seat.decisions
                    letters += len(seeds) * seat.prompt_letters
        price = prices.get(name)
        times = sum(asked[name].values())
        tries = answers_at_most(options.protocol)  # each of which is sent the prompt again
        answers = times * decisions * tries
        tokens = round(times * letters / LETTERS_PER_TOKEN), round(answers * longest_answer(name, options))
        dollars = None if price is None else (tokens[0] * price["input"] / 1e6, tokens[1] * price["output"] / 1e6)
        prompts, most = (None, None) if dollars is None else (dollars[0], tries * dollars[0] + dollars[1])
        estimates.append(Estimate(name, round(decisions), *tokens, price, prompts, most))
    return estimates


def _paid_questions(spec: str, own: Mapping[str, Any]) -> dict[str, int]:
    """``{model: how often it is asked for one decision at most}`` of the models whose tokens may cost money."""
    asked = [(find_model(one), times) for one, times in questions(spec, own).items()]
    return {found[1]: times for found, times in asked if found is not None and found[0].paid}


def _pilot(scenario: Scenario, prompt_map: PromptMap) -> list[Seat]:
    """The random player at every seat of a scenario."""
    game, policy = scenario.game(), load_agent("random")
    tasks = [EpisodeTask.of(scenario, scenario.first_seed + number) for number in range(PILOT_EPISODES)]
    counts = {player: [0, 0] for player in game.players}
    for episode in rollout(dict.fromkeys(game.players, policy), tasks):
        for player, length in prompt_letters(episode, scenario, prompt_map):
            counts[player][0] += 1
            counts[player][1] += length
    return [Seat(*(number / PILOT_EPISODES for number in counts[player])) for player in game.players]
