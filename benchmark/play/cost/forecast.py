"""What a run with ``--until`` will take, estimated before it is started.

The scripted players play the first look's episodes here, and their half-widths are carried over to more episodes by the
square root. The least and the most that one of them would need stand for an agent's need.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import sqrt
from typing import NamedTuple

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.prompt import PromptMap
from agents.protocol import answers_at_most
from agents.wrappers import questions
from benchmark.play.agents.players import OWN_PLAYERS
from benchmark.play.cost.estimate import LETTERS_PER_TOKEN, longest_answer, planned_prompts, prompt_letters
from benchmark.play.options import RunOptions
from benchmark.runs.plan import Plan
from benchmark.runs.record import recorded
from benchmark.score.luck import LuckValues, record_luck
from benchmark.score.references import References
from benchmark.score.results import Cell
from benchmark.score.scores import score_row
from benchmark.score.stopping import confidence_of, half_width, looks
from textgames.scenarios import Scenario


class Need(NamedTuple):
    """The expected needs of one agent in one scenario; the least and the most."""

    scenario: str
    agent: str
    episodes: tuple[int, int]
    decisions: tuple[int, int]
    prompt_tokens: tuple[int, int]
    completion_tokens: tuple[int, int]  # if every response were as long as it may be
    enough: bool  # whether the most episodes that are allowed are expected to be enough


class Pilot(NamedTuple):
    """The first episodes that one scripted player plays in a scenario."""

    half_width: float
    rounds: float  # per episode
    prompt_letters: float  # per decision


def forecast(plan: Plan, specs: Mapping[str, str], options: RunOptions) -> list[Need]:
    """Estimate every agent of ``{agent: spec}`` in every scenario of the plan of a first look."""
    assert options.until is not None
    pilots: dict[tuple[str, str], list[Pilot]] = {}
    prompts_of = {
        agent: PromptMap() if spec in OWN_PLAYERS else planned_prompts(agent, spec, options)
        for agent, spec in specs.items()
    }
    numbers = looks(options.episodes)
    needs = []
    for matchup in plan.seeds:
        (agent,) = matchup.agents
        scenario, prompt_map = plan.scenarios[matchup.scenario], prompts_of[agent]
        key = matchup.scenario, repr(prompt_map)
        if key not in pilots:
            pilots[key] = _pilots(scenario, plan.seeds[matchup], options, prompt_map)
        counts = [  # the look at which the interval has become narrow
            next((n for n in numbers if pilot.half_width * sqrt(numbers[0] / n) <= options.until), None)
            for pilot in pilots[key]
        ]
        episodes = [options.episodes if count is None else count for count in counts]
        decisions = [count * pilot.rounds for count, pilot in zip(episodes, pilots[key], strict=True)]
        asked = sum(questions(specs[agent], options.by_agent.get(agent, {})).values())
        asked = 0 if specs[agent] in OWN_PLAYERS else asked
        letters = [asked * n * pilot.prompt_letters for n, pilot in zip(decisions, pilots[key], strict=True)]
        longest = answers_at_most(scenario.protocol) * longest_answer(agent, options)
        needs.append(
            Need(
                scenario=matchup.scenario,
                agent=agent,
                episodes=_ends(episodes),
                decisions=_ends(decisions),
                prompt_tokens=_ends([count / LETTERS_PER_TOKEN for count in letters]),
                completion_tokens=_ends([asked * count * longest for count in decisions]),
                enough=None not in counts,
            )
        )
    return needs


def _ends(values: Sequence[float]) -> tuple[int, int]:
    return round(min(values)), round(max(values))


def _pilots(scenario: Scenario, seeds: Sequence[int], options: RunOptions, prompts: PromptMap) -> list[Pilot]:
    """Play the scripted players that can play the scenario, but those whose own score is fixed by definition."""
    found = []
    for name in OWN_PLAYERS:
        with suppress(NotImplementedError, ValueError, TypeError):  # no search, or none that reads this game
            found.append(_pilot(name, scenario, seeds, options, prompts))
    return [pilot for pilot in found if pilot.half_width > 0] or found


def _pilot(name: str, scenario: Scenario, seeds: Sequence[int], options: RunOptions, prompts: PromptMap) -> Pilot:
    game = scenario.game()
    (player,) = game.players
    values = LuckValues.of(game)
    confidence = confidence_of({"until": options.until, "episodes": options.episodes})
    cell = Cell(planned=len(seeds), confidence=confidence)
    luck, letters = {}, list[int]()
    for episode in rollout(load_agent(name), [EpisodeTask.of(scenario, seed) for seed in seeds]):
        record = recorded(episode)
        cell.add(record, player)
        if values is not None and values.exact and (found := record_luck(record, scenario, values)) is not None:
            luck[episode.seed] = found
        letters += [length for _, length in prompt_letters(episode, scenario, prompts)]
    cell.ask_luck = lambda: luck or None
    row = score_row(name, scenario, cell, References(), None)
    return Pilot(half_width(row), len(letters) / len(seeds), sum(letters) / max(1, len(letters)))
