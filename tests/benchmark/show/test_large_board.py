"""Many scenarios: grouped by suite, one table a suite, overall scores of whole suites, and the metrics of games."""

import pytest

from benchmark.score.overall import suite_rows
from benchmark.score.references import References
from benchmark.show import board as tables
from benchmark.show.board import leaderboard_tables, suite_table
from benchmark.show.document_of import results_document
from benchmark.show.notes import by_suite, home_suite
from benchmark.show.page import render_page
from benchmark.show.page.tables import Sortable, grouped_sections, overall_table
from tests.benchmark.score.test_scores import board
from textgames.scenarios import SCENARIOS, SUITES


@pytest.fixture
def whole_suites():
    """Two agents on the paper's and the planning scenarios, of which the second lacks one, and on a duel."""
    names = dict.fromkeys((*SUITES["paper"], "frozen-lake-big", "snake-long"))
    played = {name: {"a": [1.0] * 8, "b": [0.0] * 8, "random": [0.0] * 8, "planner": [1.0] * 8} for name in names}
    del played["frozen-lake-big"]["b"]
    return board(played | {"snake-duel": {"a": [2.0, 1.0] * 4, "b": [0.0, 1.0] * 4}})


def test_every_scenario_has_one_home_and_every_suite_its_order():
    groups = by_suite([*SCENARIOS, "my_game:Mine-v0"])
    assert sorted(name for names in groups.values() for name in names) == sorted([*SCENARIOS, "my_game:Mine-v0"])
    assert groups["paper"] == [name for name in SCENARIOS if name in SUITES["paper"]]
    assert groups["others"][-1] == "my_game:Mine-v0"
    assert list(groups)[-1] == "others"
    assert home_suite("frozen-lake") == "paper"  # though planning has it, too


def test_a_suites_score_is_the_mean_over_its_scenarios_of_whoever_has_them_all(whole_suites, workplace):
    # only what this version has in the suites counts; the test holds the scenarios of before there were more games
    references = References(whole_suites)
    found = {row["name"]: row for row in suite_rows(whole_suites, references)}
    assert found["paper"]["scenarios"] == list(SUITES["paper"])
    assert set(found["paper"]["normalized"]) == {"a", "b", "random", "planner"}
    document = results_document(whole_suites, max_episodes=0, references=references)
    overall = {row["agent"]: row["normalized"] for row in document["overall"]}
    assert found["paper"]["normalized"] == overall
    assert "exploration" not in found  # of which nothing was played


def test_an_agent_that_lacks_a_scenario_has_no_score_of_the_suite(whole_suites, workplace, monkeypatch):
    suites = {"paper": SUITES["paper"], "planning": ("frozen-lake", "frozen-lake-big", "snake-long")}
    monkeypatch.setattr("benchmark.score.overall.SUITES", suites)
    document = results_document(whole_suites, max_episodes=0)
    planning = document["suites"][1]
    assert planning["scenarios"] == ["frozen-lake", "frozen-lake-big", "snake-long"]
    assert planning["normalized"]["b"] is None
    assert planning["normalized"]["a"]["value"] == pytest.approx(1.0)
    (sheet,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "overall by suite")
    assert sheet.titles == ["agent", "paper", "planning", "invalid"]
    assert next(row for row in sheet.texts if row[0] == "b")[2] == "-"
    assert "planning: over frozen-lake, frozen-lake-big, snake-long" in sheet.lines
    table = Sortable(suite_table(document))
    assert [column.title for column in table.columns] == ["Agent", "paper", "planning", "Invalid"]
    assert "By suite" in render_page(document)


@pytest.mark.slow
def test_the_papers_board_shows_no_suites(workplace):
    document = results_document(board({name: {"a": [1.0] * 4} for name in SUITES["paper"]}), max_episodes=0)
    assert suite_table(document) is None
    assert not [sheet for sheet in leaderboard_tables(document) if "suite" in sheet.title]
    assert [group.suite for group in grouped_sections(document)] == [""]


def test_a_large_board_has_a_table_a_suite_with_the_same_figures(whole_suites, workplace, monkeypatch):
    document = results_document(whole_suites, max_episodes=0)
    small = leaderboard_tables(document)
    monkeypatch.setattr(tables, "LARGE", 3)
    large = leaderboard_tables(document)
    assert [sheet.title.partition(":")[0] for sheet in large][:2] == ["paper", "planning"]
    assert len(large) < len(small)
    paper = large[0]
    assert [row[0] for row in paper.texts if row[0]] == list(SUITES["paper"])
    lake = next(sheet for sheet in small if sheet.title.startswith("frozen-lake,"))
    start = next(place for place, row in enumerate(paper.texts) if row[0] == "frozen-lake")
    assert [row[1:] for row in paper.texts[start : start + len(lake.rows)]] == lake.texts
    assert any(note.startswith("frozen-lake: 0 = blind ") for note in paper.lines)


def test_metrics_stand_in_tables_of_their_own(whole_suites, workplace, monkeypatch):
    cell = whole_suites.cells["a", "snake-duel"]
    for k in range(cell.episodes):
        cell.metrics.setdefault("regret", []).append(float(k))
        for number in range(6):
            cell.metrics.setdefault(f"figure {number}", []).append(0.5)
    document = results_document(whole_suites, max_episodes=0)
    (row,) = (row for row in document["scores"] if (row["agent"], row["scenario"]) == ("a", "snake-duel"))
    assert row["metrics"]["regret"]["value"] == pytest.approx(3.5)
    sheets = [sheet for sheet in leaderboard_tables(document) if sheet.title == "snake-duel, more figures"]
    assert [len(sheet.titles) for sheet in sheets] == [1 + 5, 1 + 2]  # no table is wider than that
    assert sheets[0].titles[:2] == ["agent", "regret"]
    assert dict(zip(sheets[0].titles, sheets[0].texts[0], strict=True))["regret"].startswith("3.500 [")
    assert "regret" not in str(
        [sheet.titles for sheet in leaderboard_tables(document) if sheet.title != sheets[0].title]
    )
    monkeypatch.setattr(tables, "LARGE", 0)
    (text,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "strategy: more figures")
    assert text.texts[0][2].startswith("regret 3.500, figure 0 0.500")
    page = render_page(document)
    assert 'data-table="snake-duel-metrics"' in page
    assert 'data-table="snake-duel-seats"' in page


def test_an_overall_score_over_many_scenarios_has_no_column_for_each(whole_suites, workplace):
    document = results_document(whole_suites, max_episodes=0)
    assert len(overall_table(document).columns) == 6 + len(SUITES["paper"])
    document["overall_scenarios"] = list(map(str, range(20)))
    assert len(overall_table(document).columns) == 6
    (sheet,) = (sheet for sheet in leaderboard_tables(document) if sheet.title == "overall")
    assert ", 10, 11, 8 more, whose scores count as 0 below 0" in sheet.lines[0]
