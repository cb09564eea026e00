"""The leaderboard and the comparison of two agents, as they are read and used."""

import re
from copy import deepcopy
from typing import Any

import pytest

from benchmark.score.document import ViewDocument
from benchmark.show.board import found_tables

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect

Documents = dict[str, ViewDocument]


def test_headers_sort_with_missing_values_last(visit: Any, documents: Documents) -> None:
    document = deepcopy(documents["usual"])
    score = next(score for score in document["scores"] if score["scenario"] == "snake")
    score |= {"rank": None, "mean_return": None}
    page = visit(document)
    tab = page.go("#leaderboard?scenario=everything", ".sortable")
    for key, first in (("mean_return", "descending"), ("length", "ascending"), ("rank", "ascending")):
        head = tab.locator(f'table[data-table="snake"] thead th[data-key="{key}"]')
        for turn in range(2):
            head.locator("button").click()
            descending = (first == "descending") != bool(turn)
            assert head.get_attribute("aria-sort") == ("descending" if descending else "ascending")
            values = page.column("snake", key)
            known = [value for value in values if value is not None]
            assert known == sorted(known, reverse=descending)
            assert None not in values[: len(known)]
        assert tab.locator('table[data-table="snake"] th[aria-sort]').count() == 1
    assert "sorted by Rank, descending" in page.text("[role=status]")
    # the address brings the order back
    address = tab.evaluate("location.hash")
    assert "table=snake&sort=rank&direction=descending" in address
    order = page.texts('table[data-table="snake"] .name')
    page.go(address, ".sortable")
    assert page.texts('table[data-table="snake"] .name') == order


def test_one_scenario_alone(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("", ".sortable")
    tab.select_option("#leaderboard-scenario", "snake")
    assert page.texts("section.scenario:visible h4") == ["snake"]
    assert len(page.texts(".suite:visible h3")) == 1
    tab.go_back()
    expect(tab.locator("#overall")).to_be_visible()
    assert page.texts("section.scenario:visible h4") == []
    tab.select_option("#leaderboard-scenario", "suite:paper")
    assert page.texts("section.scenario:visible h4") == ["frozen-lake", "snake"]
    assert page.texts(".suite:visible h3") == ["paper"]
    tab.select_option("#leaderboard-scenario", "game:TextSnake-v0")
    assert page.texts("section.scenario:visible h4") == ["snake", "snake-duel"]


def test_the_leaderboard_can_be_read_without_script(visit: Any, documents: Documents) -> None:
    page = visit("usual", java_script_enabled=False)
    tab = page.go("", ".sortable")
    assert tab.locator("noscript").count() == 1
    tables = 1 + len(documents["usual"]["scenarios"]) + 2 + 2 + len(found_tables(documents["usual"]))
    assert tab.locator("table.sortable:visible").count() == tables
    assert not tab.locator("#theme").is_visible()


def test_comparison_shows_the_documents_difference_both_ways(visit: Any, documents: Documents) -> None:
    page = visit("usual")
    tab = page.go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    rows = {
        row["scenario"]: row
        for row in documents["usual"]["comparisons"]
        if (row["a"], row["b"]) == ("random", "thinker-7b")
    }

    def difference(scenario: str) -> str:
        row = tab.locator('[data-table="differences"] tbody tr').filter(has_text=re.compile(f"^{scenario}\\d"))
        return str(row.locator('[data-key="difference"]').text_content())

    def written(value: float | None) -> str:
        text = f"{value:.2f}"
        return text.lstrip("-") if float(text) == 0 else text.replace("-", "\u2212")

    for scenario, row in rows.items():
        assert f"[{written(row['difference']['low'])}, {written(row['difference']['high'])}]" in difference(scenario)
    tab.click("#compare-swap")
    expect(tab.locator("#compare-a")).to_have_value("thinker-7b")
    for scenario, row in rows.items():
        low, high = row["difference"]["low"], row["difference"]["high"]
        assert low is not None
        assert high is not None
        assert f"[{written(-high)}, {written(-low)}]" in difference(scenario)


def test_seed_by_seed_leads_to_the_replay_of_both(visit: Any, documents: Documents) -> None:
    page = visit("usual")
    tab = page.go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    seeds = tab.locator('[data-table="seeds"]')
    seeds.locator('thead [data-key="difference"] button').click()
    shown = [text.replace("\u2212", "-") for text in seeds.locator('tbody [data-key="difference"]').all_text_contents()]
    returns = {
        (view["agents"]["player_0"], view["seed"]): view["returns"]["player_0"]
        for view in documents["usual"]["episodes"]
        if view["scenario"] == "snake"
    }
    expected = sorted(
        (returns["random", 40_000 + k] - returns["thinker-7b", 40_000 + k] for k in range(6)), reverse=True
    )
    assert [float(text) for text in shown] == pytest.approx(expected)
    seed = seeds.locator("tbody th").first.text_content()
    seeds.locator("tbody a").first.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["random", "thinker-7b"]
    assert tab.locator("#replay-seed").input_value() == seed


def test_comparison_of_agents_that_meet(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#compare?a=random&b=second&scenario=snake-duel", ".sortable")
    games = tab.locator('[data-table="seeds"] tbody a')
    assert sorted(games.all_text_contents()) == ["random vs second"] * 6 + ["second vs random"] * 6
    games.filter(has_text="second vs random").last.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["second vs random"]
    assert page.texts(".who") == ["second (player_0)", "random (player_1)"]


def test_a_pair_that_the_page_doesnt_test_is_shown_seed_by_seed(visit: Any, documents: Documents) -> None:
    document = deepcopy(documents["usual"])
    document["comparisons"] = []
    tab = visit(document).go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    assert "textbench compare tests any two" in str(tab.locator("#view-compare .notice").text_content())
    assert tab.locator('[data-table="seeds"] tbody tr').count() == 6
