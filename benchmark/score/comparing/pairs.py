"""All pairs of agents: over all scenarios by the test that the overall ranks go by, and in games where they met."""

from collections.abc import Sequence
from itertools import combinations

from benchmark.score.comparing.ratings import meetings
from benchmark.score.document import MeetingView, OverallPairView
from benchmark.score.overall import OverallTest
from benchmark.score.references import References
from benchmark.score.results import ResultColumns

MOST = 30  # agents of whom every pair is tested: those that a matrix shows at once


def overall_pairs(
    results: ResultColumns, references: References, agents: Sequence[str], scenarios: Sequence[str]
) -> list[OverallPairView]:
    """The differences of the best of ``agents``, which are given best first, over ``scenarios``."""
    if len(agents) < 2 or len(scenarios) < 2:
        return []
    test = OverallTest(results, references, scenarios)
    rows = []
    for a, b in combinations(agents[:MOST], 2):
        difference, p = test.compare(a, b)
        rows.append(OverallPairView(a=a, b=b, difference=difference, p=p))
    return rows


def meeting_rows(results: ResultColumns) -> list[MeetingView]:
    """Who won how often against whom, in every scenario for several players."""
    return [
        MeetingView(scenario=scenario, a=a, b=b, wins=met.wins, draws=met.draws, losses=met.losses)
        for scenario, games in results.games.items()
        for (a, b), met in meetings(games).items()
    ]
