"""A reader of a board finds agents, sorts, compares and takes numbers home, and newer figures come."""

import csv
import io
import json
import re
import threading
from copy import deepcopy
from typing import Any

import pytest

from benchmark.show.page import render_page
from benchmark.show.page.server import PageServer

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect


@pytest.fixture
def four(documents):
    """A board of four agents, so that there is somebody to look for, with known sizes, scores and seconds."""
    document = deepcopy(documents["usual"])
    figures = {"random": (0.2, 1.0), "second": (0.1, 2.0), "Fourth": (0.6, 3.0), "thinker-7b": (0.5, 4.0)}
    for part, key in (("agents", "name"), ("overall", "agent"), ("scores", "agent")):
        document[part] += [{**row, key: "Fourth"} for row in document[part] if row[key] == "second"]
    for score in document["scores"]:
        score["seconds"] = figures[score["agent"]][1]
    for row in document["overall"]:
        row["normalized"] = {"value": figures[row["agent"]][0], "low": None, "high": None}
    agent = next(agent for agent in document["agents"] if agent["name"] == "thinker-7b")
    agent["settings"] = {**agent["settings"], "model_parameters": 7_600_000_000}
    return document


def test_agents_are_found_and_stand_against_what_they_cost_with_the_frontier_of_those_that_are_shown(visit, four):
    page = visit(four)
    tab = page.go("", "#plot .chart")
    shown = '[data-table="overall"] tbody tr:visible .name'
    assert page.texts("#plot .chart .label") == ["thinker-7b"]  # the only one with tokens
    assert page.text("#frontier").endswith("as little: thinker-7b.")
    assert "With no tokens: " in page.text("#plot > .note:not(#frontier)")
    for axis, said in (("size", "7.6B"), ("cost", "US dollars")):
        tab.select_option("#plot-axis", axis)
        expect(tab.locator("#plot .chart")).to_have_attribute("aria-label", re.compile(re.escape(said)))
    tab.select_option("#plot-axis", "seconds")
    expect(tab.locator("#frontier")).to_contain_text("as much for as little: random, Fourth.")
    path = str(tab.locator("#plot .frontier").get_attribute("d"))
    assert (path.count("V"), path.count("H")) == (1, 2)  # one step up, at the second of them, and on to the edge
    tab.fill("#find-agent", "SEC")
    assert page.texts(shown) == ["second"]
    assert page.text("#found") == "1 of 4 agents"
    expect(tab.locator("#frontier")).to_contain_text("as little: second.")
    tab.fill("#find-agent", "")
    tab.select_option("#find-kind", "served model")
    assert page.texts(shown) == ["thinker-7b"]


def test_the_curves_of_a_ladder_are_drawn(visit, four):
    def kept(share: float) -> dict[str, Any]:
        return {"value": share, "low": None, "high": None}

    rungs = [{"level": n, "scenario": f"lake-level-{n}", "episodes": n, "kept": kept(1 - n / 10)} for n in (1, 2, 3)]
    about = {"scenario": "lake", "first": 1, "last": 3, "spread": 0.8, "episodes": 6, "rungs": rungs}
    four["ladders"] = [
        {**about, "agent": "random", "level": kept(0.4), "beyond": "below"},
        {**about, "agent": "second", "level": kept(2.3), "beyond": None},
    ]
    tab = visit(four).go("", "#board .ladder .chart")
    label = str(tab.locator("#board .ladder .chart").get_attribute("aria-label"))
    assert label == "Share of the headroom that is kept, by level. random: level <1; second: level 2.3"
    assert tab.locator("#board .ladder circle").count() == 6
    tab.fill("#find-agent", "second")
    expect(tab.locator("#board .ladder circle")).to_have_count(3)


def test_the_numbers_can_be_taken_home(visit, documents):
    page = visit("usual")
    tab = page.go("", ".sortable")
    found = {}
    for name in ("csv", "json"):
        with tab.expect_download() as download:
            tab.click(f"#download-{name}")
        found[name] = download.value.path().read_text(encoding="utf-8")
    rows, scores = list(csv.DictReader(io.StringIO(found["csv"]))), documents["usual"]["scores"]
    assert [(row["agent"], row["scenario"]) for row in rows] == [(row["agent"], row["scenario"]) for row in scores]
    for row, score in zip(rows, scores, strict=True):
        for column, end in (("mean_return", "value"), ("mean_return_high", "high")):
            assert float(row[column]) == pytest.approx(score["mean_return"][end], rel=1e-5)
    assert [row["agent"] for row in json.loads(found["json"])["scores"]] == [row["agent"] for row in scores]
    page.faults[:] = [fault for fault in page.faults if "request: blob:" not in fault]


def test_headers_sort_with_missing_values_last(visit, documents):
    document = deepcopy(documents["usual"])
    score = next(score for score in document["scores"] if score["scenario"] == "snake")
    score |= {"rank": None, "mean_return": None}
    page = visit(document)
    tab = page.go("#leaderboard?scenario=everything", ".sortable")
    for key, orders in (("mean_return", ("descending", "ascending")), ("length", ("ascending", "descending"))):
        head = tab.locator(f'table[data-table="snake"] thead th[data-key="{key}"]')
        for order in orders:
            head.locator("button").click()
            assert head.get_attribute("aria-sort") == order
            values = page.column("snake", key)
            known = [value for value in values if value is not None]
            assert known == sorted(known, reverse=order == "descending")
            assert None not in values[: len(known)]
        assert tab.locator('table[data-table="snake"] th[aria-sort]').count() == 1
    address, order = tab.evaluate("location.hash"), page.column("snake", "length")
    assert "table=snake&sort=length&direction=descending" in address
    page.go(address, ".sortable")  # which brings the order back
    assert page.column("snake", "length") == order


def test_a_scenario_a_suite_or_a_game_is_shown_alone(visit):
    page = visit("usual")
    tab = page.go("", ".sortable")
    tab.select_option("#leaderboard-scenario", "snake")
    assert page.texts("section.scenario:visible h4") == ["snake"]
    assert len(page.texts(".suite:visible h3")) == 1
    tab.go_back()
    expect(tab.locator("#overall")).to_be_visible()
    assert page.texts("section.scenario:visible h4") == []
    for chosen, shown in (("suite:paper", ["frozen-lake", "snake"]), ("game:TextSnake-v0", ["snake", "snake-duel"])):
        tab.select_option("#leaderboard-scenario", chosen)
        assert page.texts("section.scenario:visible h4") == shown


def test_all_pairs_lead_to_two_agents(visit, documents):
    page = visit("usual")
    tab = page.go("#compare", ".matrix")
    names = [agent["name"] for agent in documents["usual"]["agents"]]
    assert page.texts(".matrix thead th") == names
    cells = tab.locator(".matrix tbody td")
    assert cells.count() == len(names) ** 2
    assert cells.nth(1).text_content() == page.typeset(documents["usual"]["overall_pairs"][0]["difference"], "+.2f")
    tab.select_option("#matrix-of", "snake-duel")
    expect(tab.locator(".about", has_text="won, drew and lost")).to_be_visible()
    row = next(row for row in documents["usual"]["meetings"] if (row["a"], row["b"]) == ("random", "second"))
    met = tab.locator(".matrix tbody td").nth(names.index("random") * len(names) + names.index("second"))
    expect(met).to_have_text(f"{row['wins']}\u2013{row['draws']}\u2013{row['losses']}")
    met.locator("a").click()
    expect(tab.locator("#pair")).to_have_text("random and second")


def test_comparison_shows_the_documents_difference_both_ways(visit, documents):
    page = visit("usual")
    tab = page.go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    rows = [row for row in documents["usual"]["comparisons"] if (row["a"], row["b"]) == ("random", "thinker-7b")]
    for sign, first in ((1, "random"), (-1, "thinker-7b")):
        expect(tab.locator("#compare-a")).to_have_value(first)
        shown = page.texts('[data-table="differences"] tbody tr')
        for row in rows:
            low, high = sorted(sign * row["difference"][end] for end in ("low", "high"))
            (told,) = (text for text in shown if re.match(row["scenario"] + r"\d", text))
            assert f"[{page.typeset(low)}, {page.typeset(high)}]" in told
        tab.click("#compare-swap")


def test_seed_by_seed_leads_to_the_replay_of_both_also_of_a_pair_that_the_page_doesnt_test(visit, documents):
    document = deepcopy(documents["usual"])
    document["comparisons"] = []
    page = visit(document)
    tab = page.go("#compare?a=random&b=thinker-7b&scenario=snake", ".sortable")
    assert "textbench compare tests any two" in str(tab.locator("#view-compare .notice").text_content())
    seeds = tab.locator('[data-table="seeds"]')
    seeds.locator('thead [data-key="difference"] button').click()
    shown = [text.replace("\u2212", "-") for text in seeds.locator('tbody [data-key="difference"]').all_text_contents()]
    returns = {
        (view["agents"]["player_0"], view["seed"]): view["returns"]["player_0"]
        for view in document["episodes"]
        if view["scenario"] == "snake"
    }
    expected = [returns["random", seed] - returns["thinker-7b", seed] for seed in range(40_000, 40_006)]
    assert [float(text) for text in shown] == pytest.approx(sorted(expected, reverse=True))
    seed = seeds.locator("tbody th").first.text_content()
    seeds.locator("tbody a").first.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["random", "thinker-7b"]
    assert tab.locator("#replay-seed").input_value() == seed


def test_agents_that_meet_are_named_in_their_games(visit):
    page = visit("usual")
    tab = page.go("#compare?a=random&b=second&scenario=snake-duel", ".sortable")
    games = tab.locator('[data-table="seeds"] tbody a')
    assert sorted(games.all_text_contents()) == ["random vs second"] * 6 + ["second vs random"] * 6
    games.filter(has_text="second vs random").last.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["second vs random"]
    assert page.texts(".who") == ["second (player_0)", "random (player_1)"]
    assert page.text(".outcome").startswith("second (player_0): ")
    assert "random: " in page.text(".moves tbody")
    legend = [text for text in page.texts(".legend li") if "snake" in text]
    assert legend == ["1head of snake 1: second", "2head of snake 2: random"]


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
