"""The episodes that a run with ``--until`` will take, estimated before it is started.

The scripted players play the first look's episodes here, and their half-widths are carried over to more episodes by the
square root.
"""

from contextlib import suppress
from math import sqrt

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from benchmark.play.agents.players import OWN_PLAYERS
from benchmark.play.options import RunOptions
from benchmark.runs.plan import Plan
from benchmark.runs.record import recorded
from benchmark.score.luck import LuckValues, record_luck
from benchmark.score.references import References
from benchmark.score.results import Cell
from benchmark.score.scores import score_row
from benchmark.score.stopping import confidence_of, half_width, looks
from textgames.scenarios import Scenario


def plans_until(plan: Plan, options: RunOptions) -> tuple[Plan, Plan, bool]:
    """Return the plan of a first look with the fewest and with the most episodes that a scripted player needs.

    The last value is whether the most that are allowed are expected to be enough.
    """
    assert options.until is not None
    numbers, ends, enough = looks(options.episodes), {}, True
    for name, scenario in plan.scenarios.items():
        widths = []
        for player in OWN_PLAYERS:
            with suppress(NotImplementedError, ValueError, TypeError):  # no search, or none that reads this game
                widths.append(_half_width(player, scenario, options, numbers[0]))
        # the score of a player that is the reference, or the blind one, is fixed by definition
        counts = [
            next((n for n in numbers if width * sqrt(numbers[0] / n) <= options.until), None)
            for width in [width for width in widths if width > 0] or widths
        ]
        enough = enough and None not in counts
        ends[name] = sorted(options.episodes if count is None else count for count in counts)
    least, most = (
        Plan(plan.scenarios, {one: range(own[0], own[0] + ends[one.scenario][end]) for one, own in plan.seeds.items()})
        for end in (0, -1)
    )
    return least, most, enough


def _half_width(name: str, scenario: Scenario, options: RunOptions, episodes: int) -> float:
    game = scenario.game()
    (player,) = game.players
    values = LuckValues.of(game)
    confidence = confidence_of({"until": options.until, "episodes": options.episodes})
    cell, luck = Cell(planned=episodes, confidence=confidence), {}
    first = scenario.first_seed + options.seed_offset
    for episode in rollout(load_agent(name), [EpisodeTask.of(scenario, first + k) for k in range(episodes)]):
        record = recorded(episode)
        cell.add(record, player)
        if values is not None and values.exact and (found := record_luck(record, scenario, values)) is not None:
            luck[episode.seed] = found
    cell.ask_luck = lambda: luck or None
    return half_width(score_row(name, scenario, cell, References(), None))
