"""What a reader does with a board: finds agents, sees all pairs and costs, takes numbers home, looks for failures."""

import csv
import io
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmark.score.document import EstimateView, LadderView, RungView, ViewDocument

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect

Documents = dict[str, ViewDocument]


@pytest.fixture
def four(documents: Documents) -> ViewDocument:
    """A board of four agents, so that there is somebody to look for, with known sizes."""
    document = deepcopy(documents["usual"])
    for part in ("agents", "overall"):
        row = deepcopy(next(row for row in document[part] if row.get("agent", row.get("name")) == "second"))  # type: ignore[literal-required]
        row["agent" if part == "overall" else "name"] = "Fourth"
        document[part].append(row)  # type: ignore[literal-required]
    agent = next(agent for agent in document["agents"] if agent["name"] == "thinker-7b")
    agent["settings"] = {**agent["settings"], "model_parameters": 7_600_000_000}
    return document


def test_agents_are_found_by_name_and_kind(visit: Any, four: ViewDocument) -> None:
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


def test_a_score_stands_against_what_it_costs(visit: Any, four: ViewDocument) -> None:
    page = visit(four)
    tab = page.go("", "#plot .chart")
    assert page.texts("#plot .chart .label") == ["thinker-7b"]
    assert "With no tokens: " in page.text("#plot > .note:not(#frontier)")
    tab.select_option("#plot-axis", "size")
    expect(tab.locator("#plot-axis")).to_have_value("size")
    assert "7.6B" in str(tab.locator("#plot .chart").get_attribute("aria-label"))
    tab.select_option("#plot-axis", "cost")
    assert "US dollars" in str(tab.locator("#plot .chart").get_attribute("aria-label"))


def test_the_frontier_is_drawn_and_named(visit: Any, four: ViewDocument) -> None:
    """Of four agents one is beaten by a cheaper one, and one costs more and is better."""
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


def test_the_curves_of_a_ladder_are_drawn(visit: Any, four: ViewDocument) -> None:
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


def test_a_board_of_one_scenario_shows_all_that_it_has(visit: Any, documents: Documents) -> None:
    page = visit("one agent")
    tab = page.go("", ".sortable")
    for name in ("frozen-lake", "reliability"):
        expect(tab.locator(f'[data-table="{name}"]')).to_be_visible()
    expect(tab.locator("#plot .chart")).to_be_visible()


def test_all_pairs_lead_to_two_agents(visit: Any, documents: Documents) -> None:
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


def test_the_numbers_can_be_taken_home(visit: Any, documents: Documents, tmp_path: Path) -> None:
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


def test_failures_come_first_and_next(visit: Any, documents: Documents) -> None:
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


def test_a_quicker_replay_takes_less_time(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=thinker-7b&seed=10003", ".panel")
    tab.clock.install()
    page.go("#replay?scenario=frozen-lake&a=thinker-7b&seed=10003", ".panel")
    tab.select_option("#step-speed", "4")
    tab.click("#step-play")
    tab.clock.run_for(400)
    assert page.text(".count").startswith("Round 3")


def test_a_duel_names_the_agents(visit: Any) -> None:
    page = visit("usual")
    page.go("#replay?scenario=snake-duel&a=random+vs+second", ".panel")
    assert page.texts(".who") == ["random (player_0)", "second (player_1)"]
    assert page.text(".outcome").startswith("random (player_0): ")
    assert "second: " in page.text(".moves tbody")
    legend = page.texts(".legend li")
    assert [text for text in legend if "snake" in text] == ["1head of snake 1: random", "2head of snake 2: second"]


def test_a_phone_has_no_hints_for_keys_and_short_tables(visit: Any) -> None:
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
