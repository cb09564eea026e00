"""Adding episodes until every score is known well enough: ``textbench run --until 0.05``."""

from collections.abc import Sequence

from benchmark.errors import UsageError
from benchmark.play.options import RunOptions
from benchmark.play.progress import Meter
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan, num_players, to_ranges
from benchmark.score.references import References
from benchmark.score.results import read_columns
from benchmark.score.scores import score_row
from benchmark.score.stopping import half_width, looks


def first_plan(plan: Plan, options: RunOptions) -> Plan:
    """The plan of a run's first look, at the tables of a plan.

    Raises:
        UsageError: a scenario is for several players, whose ratings have no such interval.
    """
    for name, scenario in plan.scenarios.items():
        if num_players(scenario) > 1:
            raise UsageError(f"--until is for scenarios of one player, {name!r} has several; play it with --episodes")
    return plan.with_episodes(looks(options.episodes)[0], options.seed_offset)


class Growth:
    """Decides after an agent's episodes which further ones it plays, and notes them in the run's manifest.

    Attributes:
        too_wide: ``{agent and scenario: half-width}`` of the scores that the most episodes haven't made narrow enough.
    """

    def __init__(self, folder: RunFolder, width: float, most: int, meter: Meter) -> None:
        self._folder, self._width, self._meter = folder, width, meter
        self._looks = looks(most)
        self.too_wide: dict[str, float] = {}

    def __call__(self, matchups: Sequence[Matchup]) -> dict[Matchup, list[int]]:
        """The further seeds of these matchups; nothing where every interval is narrow, or nothing more is allowed.

        A scenario with unscored episodes isn't extended: a resume plays those first.
        """
        results = read_columns([self._folder.path], sorted({agent for matchup in matchups for agent in matchup.agents}))
        references = References(results)
        plan = Plan.from_manifest(self._folder.manifest)
        further: dict[Matchup, list[int]] = {}
        for matchup in matchups:
            (agent,), seeds = matchup.agents, plan.seeds[matchup]
            cell = results.cells[agent, matchup.scenario]
            if not cell.complete:
                continue
            width = half_width(score_row(agent, plan.scenarios[matchup.scenario], cell, references, None))
            if width <= self._width:
                continue
            more = next((look for look in self._looks if look > len(seeds)), None)
            if more is None:
                self.too_wide[f"{agent} in {matchup.scenario}"] = width
            else:
                further[matchup] = list(range(seeds[0] + len(seeds), seeds[0] + more))
        self._note(further)
        return further

    def _note(self, further: dict[Matchup, list[int]]) -> None:
        """Plan the further episodes before they are played, so that a resume knows of them."""
        if not further:
            return
        for row in self._folder.manifest["matchups"]:
            matchup = Matchup(row["scenario"], tuple(row["agents"]))
            if matchup in further:
                row["seeds"] = to_ranges([*range(row["seeds"][0][0], further[matchup][-1] + 1)])
                self._meter.tallies[matchup].total += len(further[matchup])
        self._folder.write_manifest()
