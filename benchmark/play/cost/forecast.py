"""What a run with ``--until`` will take, estimated before it is started.

Nobody knows how widely an agent's returns vary before it has played. The scripted players are asked instead: they play
the first look's episodes here, which costs nothing, and their half-widths are carried over to more episodes by the
square root. The least and the most that one of them would need stand for what an agent may need.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from agents.episode import Episode, EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.prompt import PromptMap, as_text
from agents.turn import TurnRequest
from benchmark.play.agents.players import OWN_PLAYERS
from benchmark.play.options import RunOptions
from benchmark.runs.plan import Plan
from benchmark.runs.record import to_record
from benchmark.score.luck.folder import record_luck
from benchmark.score.luck.terms import LuckValues
from benchmark.score.references import References
from benchmark.score.results import Cell, add_to_cell
from benchmark.score.scores import score_row
from benchmark.score.stopping import confidence_of, half_width, looks
from textgames.scenarios import Scenario

LETTERS_PER_TOKEN = 4  # of English text, as tokenizers of language models usually have it


class Need(NamedTuple):
    """What one agent is expected to take in one scenario; the least and the most."""

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
    """What every agent needs in every scenario of a plan.

    Args:
        plan: of the first look.
        specs: ``{agent: spec}``.
        options: of the run; ``until`` is set.
    """
    pilots = {name: _pilots(scenario, plan, options) for name, scenario in plan.scenarios.items()}
    needs = []
    for matchup in plan.seeds:
        (agent,) = matchup.agents
        tried = pilots[matchup.scenario]
        counts = [_needed(pilot.half_width, options) for pilot in tried]
        enough = all(count is not None for count in counts)
        episodes = [options.episodes if count is None else count for count in counts]
        decisions = [count * pilot.rounds for count, pilot in zip(episodes, tried, strict=True)]
        scripted = specs[agent] in OWN_PLAYERS
        longest = options.max_tokens or Decoding().max_tokens
        prompts = [
            0.0 if scripted else count * pilot.prompt_letters / LETTERS_PER_TOKEN
            for count, pilot in zip(decisions, tried, strict=True)
        ]
        answers = [0.0 if scripted else count * longest for count in decisions]
        needs.append(
            Need(
                scenario=matchup.scenario,
                agent=agent,
                episodes=_ends(episodes),
                decisions=_ends(decisions),
                prompt_tokens=_ends(prompts),
                completion_tokens=_ends(answers),
                enough=enough,
            )
        )
    return needs


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


def _ends(values: Sequence[float]) -> tuple[int, int]:
    return round(min(values)), round(max(values))


def _needed(first: float, options: RunOptions) -> int | None:
    """The look at which a half-width of ``first`` after the first one has become narrow; ``None`` if none is."""
    assert options.until is not None
    numbers = looks(options.episodes)
    return next((look for look in numbers if first * sqrt(numbers[0] / look) <= options.until), None)


def _pilots(scenario: Scenario, plan: Plan, options: RunOptions) -> list[Pilot]:
    """The scripted players that can play the scenario, without those whose own score is fixed by definition."""
    (seeds,) = {tuple(seeds) for matchup, seeds in plan.seeds.items() if matchup.scenario == scenario.name}
    found = []
    for name in OWN_PLAYERS:
        try:
            found.append(_pilot(name, scenario, seeds, options))
        except (NotImplementedError, ValueError, TypeError):  # no search, or none that reads this game
            continue
    return [pilot for pilot in found if pilot.half_width > 0] or found


def _pilot(name: str, scenario: Scenario, seeds: Sequence[int], options: RunOptions) -> Pilot:
    game = scenario.game()
    (player,) = game.players
    values = LuckValues.of(game)
    prompts = PromptMap(options.mode or "think")
    if options.prompts is not None:
        prompts = PromptMap.from_file(options.prompts, options.mode or "think")
    settings = {"until": options.until, "episodes": options.episodes}
    cell = Cell(planned=len(seeds), confidence=confidence_of(settings))
    luck = {}
    decisions = letters = 0
    for episode in rollout(load_agent(name), [EpisodeTask.of(scenario, seed) for seed in seeds]):
        record = to_record(episode)
        add_to_cell(cell, record, player)
        if values is not None and values.exact and (found := record_luck(record, scenario, values)) is not None:
            luck[episode.seed] = found
        for _, length in prompt_letters(episode, scenario, prompts):
            decisions += 1
            letters += length
    cell.ask_luck = lambda: luck or None
    row = score_row(name, scenario, cell, References(), None)
    return Pilot(half_width(row), decisions / len(seeds), letters / max(1, decisions))
