"""A reader of a board finds agents, sorts, compares and takes numbers home; newer figures come, and all texts fit."""

import csv
import io
import json
import re
import threading
from copy import deepcopy
from typing import Any

import pytest

from benchmark.score.document import EstimateView, LadderView, RungView, ViewDocument
from benchmark.show.board import found_tables
from benchmark.show.page import render_page
from benchmark.show.page.server import PageServer

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect

Documents = dict[str, ViewDocument]


@pytest.fixture
def four(documents):
    """A board of four agents, so that there is somebody to look for, with known sizes."""
    document = deepcopy(documents["usual"])
    for part in ("agents", "overall"):
        row = deepcopy(next(row for row in document[part] if row.get("agent", row.get("name")) == "second"))  # type: ignore[literal-required]
        row["agent" if part == "overall" else "name"] = "Fourth"
        document[part].append(row)  # type: ignore[literal-required]
    agent = next(agent for agent in document["agents"] if agent["name"] == "thinker-7b")
    agent["settings"] = {**agent["settings"], "model_parameters": 7_600_000_000}
    return document


def test_agents_are_found_by_name_and_kind(visit, four):
    page = visit(four)
    tab = page.go("", ".sortable")
    shown = '[data-table="overall"] tbody tr:visible .name'
    assert len(page.texts(shown)) == 4
    tab.fill("#find-agent", "FOUR")
    assert page.texts(shown) == ["Fourth"]
    assert page.text("#found") == "1 of 4 agents"
    tab.fill("#find-agent", "nobody is called so")
    assert page.texts(shown) == []
    tab.fill("#find-agent", "")
    tab.select_option("#find-kind", "served model")
    assert page.texts(shown) == ["thinker-7b"]
    assert "7.6B" in page.texts('[data-table="overall"] tbody tr:visible td')


def test_a_score_stands_against_what_it_costs(visit, four):
    page = visit(four)
    tab = page.go("", "#plot .chart")
    assert page.texts("#plot .chart .label") == ["thinker-7b"]
    assert "With no tokens: " in page.text("#plot > .note:not(#frontier)")
    tab.select_option("#plot-axis", "size")
    expect(tab.locator("#plot-axis")).to_have_value("size")
    assert "7.6B" in str(tab.locator("#plot .chart").get_attribute("aria-label"))
    tab.select_option("#plot-axis", "cost")
    assert "US dollars" in str(tab.locator("#plot .chart").get_attribute("aria-label"))


def test_the_frontier_is_drawn_and_named(visit, four):
    figures = {"random": (0.2, 1.0), "second": (0.1, 2.0), "Fourth": (0.6, 3.0), "thinker-7b": (0.5, 4.0)}
    known = [row for row in four["scores"] if row["scenario"] in four["overall_scenarios"]]
    four["scores"] += [{**row, "agent": "Fourth"} for row in known if row["agent"] == "second"]
    for score in four["scores"]:
        score["seconds"] = figures[score["agent"]][1]
    for row in four["overall"]:
        row["normalized"] = {"value": figures[row["agent"]][0], "low": None, "high": None}
    page = visit(four)
    tab = page.go("", "#plot .chart")
    assert page.text("#frontier").endswith("as little: thinker-7b.")  # the only one with tokens
    tab.select_option("#plot-axis", "seconds")
    expect(tab.locator("#frontier")).to_have_text(
        "On the frontier, where no other agent scores as much for as little: random, Fourth."
    )
    path = str(tab.locator("#plot .frontier").get_attribute("d"))
    assert path.count("V") == 1  # one step up, at the second of them
    assert path.count("H") == 2  # and on to the edge
    tab.fill("#find-agent", "second")
    expect(tab.locator("#frontier")).to_contain_text("as little: second.")  # of those that are shown


def test_the_curves_of_a_ladder_are_drawn(visit, four):
    def kept(share: float) -> EstimateView:
        return EstimateView(value=share, low=None, high=None)

    def row(agent: str, level: float, beyond: Any) -> LadderView:
        rungs = [RungView(level=n, scenario=f"lake-level-{n}", episodes=n, kept=kept(1.0 - n / 10)) for n in (1, 2, 3)]
        return LadderView(
            agent=agent, scenario="lake", level=kept(level), beyond=beyond, first=1, last=3, spread=0.8, episodes=6,
            rungs=rungs,
        )  # fmt: skip

    four["ladders"] = [row("random", 0.4, "below"), row("second", 2.3, None)]
    page = visit(four)
    tab = page.go("", "#board .ladder .chart")
    label = str(tab.locator("#board .ladder .chart").get_attribute("aria-label"))
    assert label == "Share of the headroom that is kept, by level. random: level <1; second: level 2.3"
    assert tab.locator("#board .ladder circle").count() == 6
    tab.fill("#find-agent", "second")
    expect(tab.locator("#board .ladder circle")).to_have_count(3)


def test_a_board_of_one_scenario_shows_all_that_it_has(visit, documents):
    page = visit("one agent")
    tab = page.go("", ".sortable")
    for name in ("frozen-lake", "reliability"):
        expect(tab.locator(f'[data-table="{name}"]')).to_be_visible()
    expect(tab.locator("#plot .chart")).to_be_visible()


def test_all_pairs_lead_to_two_agents(visit, documents):
    page = visit("usual")
    tab = page.go("#compare", ".matrix")
    names = [agent["name"] for agent in documents["usual"]["agents"]]
    assert page.texts(".matrix thead th") == names
    cells = tab.locator(".matrix tbody td")
    assert cells.count() == len(names) ** 2
    pair = documents["usual"]["overall_pairs"][0]
    written = f"{pair['difference']:+.2f}".replace("-", "\u2212")
    assert cells.nth(1).text_content() == ("0.00" if float(written.replace("\u2212", "-")) == 0 else written)
    tab.select_option("#matrix-of", "snake-duel")
    expect(tab.locator(".about", has_text="won, drew and lost")).to_be_visible()
    met = {(row["a"], row["b"]): row for row in documents["usual"]["meetings"]}
    row = met["random", "second"]
    place = names.index("random") * len(names) + names.index("second")
    expect(tab.locator(".matrix tbody td").nth(place)).to_have_text(
        f"{row['wins']}\u2013{row['draws']}\u2013{row['losses']}"
    )
    tab.locator(".matrix tbody td").nth(place).locator("a").click()
    expect(tab.locator("#pair")).to_have_text("random and second")


def test_the_numbers_can_be_taken_home(visit, documents, tmp_path):
    page = visit("usual")
    tab = page.go("", ".sortable")
    found = {}
    for name in ("csv", "json"):
        with tab.expect_download() as download:
            tab.click(f"#download-{name}")
        download.value.save_as(tmp_path / name)
        found[name] = (tmp_path / name).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(found["csv"])))
    scores = documents["usual"]["scores"]
    assert [(row["agent"], row["scenario"]) for row in rows] == [(row["agent"], row["scenario"]) for row in scores]
    for row, score in zip(rows, scores, strict=True):
        assert score["mean_return"]
        assert float(row["mean_return"]) == pytest.approx(score["mean_return"]["value"], rel=1e-5)
        assert float(row["mean_return_high"]) == pytest.approx(score["mean_return"]["high"], rel=1e-5)
    data = json.loads(found["json"])
    assert [row["agent"] for row in data["scores"]] == [row["agent"] for row in scores]
    assert {agent["name"] for agent in data["agents"]} == {"random", "second", "thinker-7b"}
    page.faults[:] = [fault for fault in page.faults if "request: blob:" not in fault]


def test_failures_come_first_and_next(visit, documents):
    page = visit("usual")
    views = [
        view
        for view in documents["usual"]["episodes"]
        if (view["scenario"], view["agents"].get("player_0")) == ("snake", "thinker-7b")
    ]

    def trouble(view: Any) -> bool:
        return not view["successes"]["player_0"] or not all(view["steps"]["valid"])

    wrong = [view["seed"] for view in views if trouble(view)]
    assert 0 < len(wrong) < len(views), "these episodes show no difference: take others"
    tab = page.go("#replay?scenario=snake&a=thinker-7b", ".panel")
    offered = [int(text.split()[0]) for text in page.texts("#replay-seed option")]
    assert set(offered[: len(wrong)]) == set(wrong)
    visited = {int(tab.locator("#replay-seed").input_value())}
    for _ in wrong[1:]:
        before = tab.locator("#replay-seed").input_value()
        tab.click("#replay-failure")
        expect(tab.locator("#replay-seed")).not_to_have_value(before)
        visited.add(int(tab.locator("#replay-seed").input_value()))
    assert visited == set(wrong)
    tab.select_option("#replay-order", "seed")
    expect(tab.locator("#replay-seed option").first).to_contain_text(str(min(view["seed"] for view in views)))


def test_a_duel_names_the_agents(visit):
    page = visit("usual")
    page.go("#replay?scenario=snake-duel&a=random+vs+second", ".panel")
    assert page.texts(".who") == ["random (player_0)", "second (player_1)"]
    assert page.text(".outcome").startswith("random (player_0): ")
    assert "second: " in page.text(".moves tbody")
    legend = page.texts(".legend li")
    assert [text for text in legend if "snake" in text] == ["1head of snake 1: random", "2head of snake 2: second"]


def test_a_phone_has_no_hints_for_keys_and_short_tables(visit):
    page = visit("usual", viewport={"width": 390, "height": 844})
    tab = page.go("#replay?scenario=snake&a=random", ".panel")
    assert not tab.locator(".keys").is_visible()
    tab = page.go("#leaderboard?scenario=snake", ".sortable")
    row = tab.locator('[data-table="snake"] tbody tr').first
    assert row.locator("> :visible").count() == 3  # rank, name and one figure
    tab.locator('.sort-by:has(+ table[data-table="snake"]) select').select_option("invalid")
    assert row.locator("> :visible").count() == 3
    heads = page.texts('[data-table="snake"] thead th:visible')
    assert heads[2].startswith("Invalid")


def test_headers_sort_with_missing_values_last(visit, documents):
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


def test_one_scenario_alone(visit):
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


def test_the_leaderboard_can_be_read_without_script(visit, documents):
    page = visit("usual", java_script_enabled=False)
    tab = page.go("", ".sortable")
    assert tab.locator("noscript").count() == 1
    tables = 1 + len(documents["usual"]["scenarios"]) + 2 + 2 + len(found_tables(documents["usual"]))
    assert tab.locator("table.sortable:visible").count() == tables
    assert not tab.locator("#theme").is_visible()


def test_comparison_shows_the_documents_difference_both_ways(visit, documents):
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


def test_seed_by_seed_leads_to_the_replay_of_both(visit, documents):
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


def test_comparison_of_agents_that_meet(visit):
    page = visit("usual")
    tab = page.go("#compare?a=random&b=second&scenario=snake-duel", ".sortable")
    games = tab.locator('[data-table="seeds"] tbody a')
    assert sorted(games.all_text_contents()) == ["random vs second"] * 6 + ["second vs random"] * 6
    games.filter(has_text="second vs random").last.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["second vs random"]
    assert page.texts(".who") == ["second (player_0)", "random (player_1)"]


def test_a_pair_that_the_page_doesnt_test_is_shown_seed_by_seed(visit, documents):
    document = deepcopy(documents["usual"])
    document["comparisons"] = []
    tab = visit(document).go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    assert "textbench compare tests any two" in str(tab.locator("#view-compare .notice").text_content())
    assert tab.locator('[data-table="seeds"] tbody tr').count() == 6


def test_newer_figures_come_and_what_the_reader_chose_stays(browser, documents):
    early, late = deepcopy(documents["usual"]), deepcopy(documents["usual"])
    early["episodes"] = early["episodes"][:5]
    early["episodes_total"], early["episodes_planned"] = 5, late["episodes_total"]
    late["episodes_planned"] = late["episodes_total"]
    row = next(row for row in early["scores"] if row["scenario"] == "snake")
    row["mean_return"] = {"value": -7.25, "low": -8.0, "high": -7.0}
    with PageServer(render_page(early, follow="v1"), version="v1") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            tab = browser.new_page()
            faults: list[str] = []
            tab.on("console", lambda message: faults.append(message.text))
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.goto(server.url + "#leaderboard?scenario=snake")
            table = tab.locator('table[data-table="snake"]')
            expect(table).to_contain_text("\u22127.250")
            expect(tab.locator("#following")).to_contain_text("5 of ")
            table.locator('thead [data-key="length"] button').click()
            tab.evaluate("window.samePage = true")
            server.show(render_page(late), "v2")
            expect(table).not_to_contain_text("\u22127.250", timeout=10_000)
            expect(tab.locator("#following")).to_contain_text("are played")
            assert tab.evaluate("window.samePage")  # nothing was loaded again
            assert table.locator('[data-key="length"]').first.get_attribute("aria-sort") == "ascending"
            assert tab.locator("#leaderboard-scenario").input_value() == "snake"
            tab.click('nav a[data-view="replay"]')
            expect(tab.locator("#replay-scenario option")).to_have_count(len(late["scenarios"]))
            assert faults == []
            tab.close()
        finally:
            server.shutdown()
            thread.join()
