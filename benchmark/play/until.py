"""Adding episodes to a run while it is played, by what it has found so far.

``textbench run --until 0.05`` adds some until every score is known well enough, ``--levels 1-10`` if they tell most
of an agent's level.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil, sqrt

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from benchmark.errors import UsageError
from benchmark.play.agents.players import OWN_PLAYERS
from benchmark.play.options import RunOptions, levels_in
from benchmark.play.progress import Meter
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan, num_players
from benchmark.runs.record import recorded
from benchmark.score.beside import fit_of, rungs_of, weights_of
from benchmark.score.luck import LuckValues, ToldLuck, record_luck
from benchmark.score.references import References
from benchmark.score.results import Cell, ResultColumns, read_columns
from benchmark.score.scores import score_row
from benchmark.score.stopping import confidence_of, half_width, looks
from textgames.scenarios import Scenario

BATCH = 4
"""Episodes that are played at a level before the next one is chosen."""


def first_plan(plan: Plan, options: RunOptions) -> Plan:
    """Return the plan of the first look of a run that grows: one episode at every level, or a look."""
    if options.levels is not None:
        ladders = [one.ladder_name for one in plan.scenarios.values()]
        if (most := max(map(ladders.count, ladders))) > options.episodes:
            raise UsageError(f"--levels {options.levels} plays each level at least once: --episodes {most} or more")
        return plan.with_episodes(1, options.seed_offset)
    for name, scenario in plan.scenarios.items():
        if num_players(scenario) > 1:  # whose ratings have no such interval
            raise UsageError(f"--until is for scenarios of one player, {name!r} has several; play it with --episodes")
    return plan.with_episodes(looks(options.episodes)[0], options.seed_offset)


def longest_plan(plan: Plan, options: RunOptions) -> Plan:
    """Return a plan with all the episodes that a run that grows may play, at the levels of a ladder spread evenly."""
    levels = 1 if options.levels is None else len(levels_in(options.levels))
    return plan.with_episodes(ceil(options.episodes / levels), options.seed_offset)


def plans_until(plan: Plan, options: RunOptions) -> tuple[Plan, Plan, bool]:
    """Return the plan of a first look with the fewest and with the most episodes that a scripted player needs.

    The half-widths of the first look are carried over to more episodes by the square root. The last value is whether
    the most that are allowed are expected to be enough.
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


class Growth:
    """Decides after an agent's episodes which further ones it plays, and plans them in the run's manifest."""

    def __init__(self, folder: RunFolder, options: RunOptions, meter: Meter) -> None:
        self._folder, self._options, self._meter = folder, options, meter
        # ``{agent and scenario: half-width}`` of the scores that the most episodes haven't made narrow enough
        self.too_wide: dict[str, float] = {}
        self._told: ToldLuck = {}  # each look would play all episodes again
        self._references = References()  # levels are of solved games: what a start is worth is computed once

    def __call__(self, matchups: Sequence[Matchup]) -> dict[Matchup, list[int]]:
        """Return the further seeds of an agent's matchups; nothing if it has played enough.

        A scenario with unscored episodes isn't extended: a resume plays those first.
        """
        agents = sorted({agent for matchup in matchups for agent in matchup.agents})
        results = read_columns([self._folder.path], agents, self._told)
        plan = Plan.from_manifest(self._folder.manifest)
        choose = self._until_narrow if self._options.levels is None else self._at_telling_levels
        further = {}
        for matchup, more in choose(matchups, plan, results).items():
            first, played = plan.seeds[matchup][0], len(plan.seeds[matchup])
            further[matchup] = list(range(first + played, first + played + more))
        for row in self._folder.manifest["matchups"]:
            matchup = Matchup(row["scenario"], tuple(row["agents"]))
            if matchup in further:
                row["seeds"] = [[row["seeds"][0][0], further[matchup][-1]]]
                self._meter.tallies[matchup].total += len(further[matchup])
        if further:  # before they are played, so that a resume knows of them
            self._folder.write_manifest()
        return further

    def _until_narrow(self, matchups: Sequence[Matchup], plan: Plan, results: ResultColumns) -> Mapping[Matchup, int]:
        """Return the episodes to the next look of the matchups whose interval is too wide."""
        references, found = References(results), {}
        planned = looks(self._options.episodes, self._folder.manifest.get("extended", ()))
        for matchup in matchups:
            (agent,), played = matchup.agents, len(plan.seeds[matchup])
            cell = results.cells[agent, matchup.scenario]
            if not cell.complete:
                continue
            width = half_width(score_row(agent, plan.scenarios[matchup.scenario], cell, references, None))
            if width <= (self._options.until or 0):
                continue
            more = next((look for look in planned if look > played), None)
            if more is None:
                self.too_wide[f"{agent} in {matchup.scenario}"] = width
            else:
                found[matchup] = more - played
        return found

    def _at_telling_levels(
        self, matchups: Sequence[Matchup], plan: Plan, results: ResultColumns
    ) -> Mapping[Matchup, int]:
        """Return a few episodes at the level that tells most of the agent's, until ``--episodes`` are played."""
        found = {}
        ladders: dict[str, list[Matchup]] = {}
        for matchup in matchups:
            ladders.setdefault(plan.scenarios[matchup.scenario].ladder_name, []).append(matchup)
        for ladder, own in ladders.items():
            (agent,) = own[0].agents
            more = min(BATCH, self._options.episodes - sum(len(plan.seeds[matchup]) for matchup in own))
            if more > 0 and all(results.cells[agent, matchup.scenario].complete for matchup in own):
                rungs = rungs_of(results, self._references, agent, ladder)
                if rungs:
                    level = fit_of(rungs).next_level(more, weights_of(rungs))
                    found[Matchup(rungs[level].scenario.name, (agent,))] = more
                else:  # a game that isn't solved: then there is no level to be found, only scores at each
                    found[min(own, key=lambda matchup: len(plan.seeds[matchup]))] = more
        return found
