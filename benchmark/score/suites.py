"""The overall score of every suite that a board holds whole."""

from benchmark.score.comparison import solo_scenarios
from benchmark.score.document import SuiteView
from benchmark.score.overall import is_shared, overall_rows
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from textgames.scenarios import ABOUT_SUITES, SUITES


def suite_rows(results: ResultColumns, references: References) -> list[SuiteView]:
    """The overall scores over every suite whose scenarios are all there and that has some that count.

    Those are the ones for one player with a known scale that more than half of the agents were to play. There are no
    ranks: they would make the board's family of comparisons larger, and with it every test weaker.
    """
    alone = {scenario.name for scenario in solo_scenarios(results)}
    rows = []
    for suite, names in SUITES.items():
        if not names or not set(names) <= results.scenarios.keys():
            continue
        wanted = [name for name in names if name in alone and is_shared(results, name)]
        counted, scores = overall_rows(results, references, wanted, ranked=False)
        if counted:
            normalized = {row["agent"]: row["normalized"] for row in scores}
            rows.append(SuiteView(name=suite, about=ABOUT_SUITES[suite], scenarios=counted, normalized=normalized))
    return rows
