"""The page in real headless Chromium, read from disk (``pytest -m browser``; needs Debian's chromium)."""

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmark.document import ViewDocument
from benchmark.report import render_page, write_page
from benchmark.report.server import PageServer

pytestmark = pytest.mark.browser
sync_api = pytest.importorskip("playwright.sync_api", reason="the page's browser tests drive chromium with playwright")

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",  # containers have no user namespaces to build the sandbox of
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWS = ("#leaderboard", "#compare", "#replay", "#replay?scenario=frozen-lake&b={b}")

Documents = dict[str, ViewDocument]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium")
    assert path, "these tests need chromium: apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A tab on one page; it notes every error, dialog and request that isn't the page itself."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **context})
        self.context.set_default_timeout(10_000)
        self.tab = self.context.new_page()
        self.url = path.as_uri()
        self.faults: list[str] = []
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.tab.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.tab.on("request", lambda request: self._note_request(request.url))

    def _note_request(self, url: str) -> None:
        if url.partition("#")[0] != self.url:
            self.faults.append(f"request: {url}")

    def go(self, address: str = "", wait: str = "main") -> Any:
        self.tab.goto("about:blank")
        self.tab.goto(self.url + address)
        self.tab.wait_for_selector(f"{wait} >> visible=true")
        return self.tab

    def text(self, selector: str) -> str:
        return str(self.tab.locator(selector).first.text_content())

    def texts(self, selector: str) -> list[str]:
        return list(self.tab.locator(selector).all_text_contents())


@pytest.fixture
def visit(browser: Any, documents: Documents, tmp_path: Path) -> Iterator[Any]:
    visits = []

    def open_page(name: str | ViewDocument, **context: Any) -> Visit:
        path = tmp_path / "page.html"
        write_page(documents[name] if isinstance(name, str) else name, path)
        visits.append(Visit(browser, path, **context))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()
        assert [fault for fault in one.faults if "about:blank" not in fault] == []


def shown_as(text: str) -> str:
    """What the page makes of control characters and line separators."""
    text = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f]", lambda match: chr(0x2400 + ord(match[0])), text)
    text = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda match: f"[U+{ord(match[0]):04X}]", text)
    return re.sub("[\u2028\u2029]", "\u21b5\n", text.replace("\x7f", "\u2421"))


def steps_of(document: ViewDocument, scenario: str, agent: str, seed: int) -> list[dict[str, Any]]:
    """The steps of an episode of a scenario with one player, with texts in place of indices."""
    view = next(
        view
        for view in document["episodes"]
        if (view["scenario"], view["agents"].get("player_0"), view["seed"]) == (scenario, agent, seed)
    )
    columns: dict[str, Any] = dict(view["steps"])
    for name in ("board", "observation", "response"):
        columns[name] = [document["texts"][place] for place in columns[name]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def points(value: float) -> str:
    return f"{round(value, 3):g}".replace("-", "\u2212")


# ---------------------------------------------------------------- hostile text


def test_hostile_text_is_shown_and_does_nothing(visit: Any, documents: Documents) -> None:
    document = documents["hostile"]
    page = visit("hostile")
    seen = set()
    for view in document["episodes"]:
        agent, seed = view["agents"]["player_0"], view["seed"]
        steps = steps_of(document, "frozen-lake", agent, seed)
        query = page.go("#compare").evaluate("([a, seed]) => new URLSearchParams({a, seed}).toString()", [agent, seed])
        tab = page.go(f"#replay?{query}", ".panel")
        for step in steps:
            assert page.text(".response") == (shown_as(step["response"]) or "(empty)")
            seen.add(step["response"])
            tab.keyboard.press("ArrowRight")
        assert tab.evaluate("window.pwned") is None
    page.go("#leaderboard", ".sortable")
    assert page.tab.evaluate(
        "[window.pwned, document.images.length, document.querySelectorAll('iframe, base').length]"
    ) == [
        None,
        0,
        0,
    ]
    assert len(seen) > 6  # all the attacks were on show


def test_hostile_addresses_fall_back_to_what_there_is(visit: Any) -> None:
    page = visit("usual")
    attack = "%3Cimg%20src%3Dx%20onerror%3D%22window.pwned%3D1%22%3E"
    tab = page.go(f"#replay?scenario={attack}&a={attack}&b={attack}&seed={attack}&step=-1e9", ".panel")
    assert page.text(".transport .count") == "Round 1 of " + page.text(".transport .count").split()[-1]
    assert "<img" in page.text(".notice")
    page.go(f"#compare?a={attack}&b={attack}&scenario={attack}", ".sortable")
    page.go(f"#leaderboard?scenario={attack}&table={attack}&sort={attack}", ".sortable")
    page.go(f"#constructor?{attack}")
    assert tab.locator("#view-leaderboard").is_visible()
    assert tab.evaluate("window.pwned") is None


# ---------------------------------------------------------------- leaderboard


def column(page: Visit, table: str, key: str) -> list[float | None]:
    cells = page.tab.locator(f'table[data-table="{table}"] tbody [data-key="{key}"]')
    values = [cell.get_attribute("data-sort") for cell in cells.all()]
    return [None if value is None else float(value) for value in values]


def test_headers_sort_with_missing_values_last(visit: Any, documents: Documents) -> None:
    document = deepcopy(documents["usual"])
    score = next(score for score in document["scores"] if score["scenario"] == "snake")
    score |= {"rank": None, "mean_return": None}
    page = visit(document)
    tab = page.go("", ".sortable")
    for key, first in (("mean_return", "descending"), ("length", "ascending"), ("rank", "ascending")):
        head = tab.locator(f'table[data-table="snake"] thead th[data-key="{key}"]')
        for turn in range(2):
            head.locator("button").click()
            descending = (first == "descending") != bool(turn)
            assert head.get_attribute("aria-sort") == ("descending" if descending else "ascending")
            values = column(page, "snake", key)
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
    assert page.texts("section.scenario:visible h3") == ["snake"]
    tab.go_back()
    assert len(page.texts("section.scenario:visible h3")) == 5


def test_the_leaderboard_can_be_read_without_script(visit: Any, documents: Documents) -> None:
    page = visit("usual", java_script_enabled=False)
    tab = page.go("", ".sortable")
    assert tab.locator("noscript").count() == 1
    assert tab.locator("table.sortable:visible").count() == 1 + len(documents["usual"]["scenarios"]) + 1
    assert not tab.locator("#theme").is_visible()


# ---------------------------------------------------------------- comparison


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
    sync_api.expect(tab.locator("#compare-a")).to_have_value("thinker-7b")
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
    assert page.texts('[data-table="seeds"] tbody a') == ["random vs second"] * 6 + ["second vs random"] * 6
    tab.locator('[data-table="seeds"] tbody a').last.click()
    tab.wait_for_selector(".panel")
    assert page.texts(".panel h3") == ["second vs random"]
    assert page.texts(".who") == ["player_0: second", "player_1: random"]


# ---------------------------------------------------------------- replay


def test_replay_shows_every_step_as_it_was_played(visit: Any, documents: Documents) -> None:
    page = visit("usual")
    for scenario, seed in (("frozen-lake", 10_003), ("snake", 40_002)):
        steps = steps_of(documents["usual"], scenario, "thinker-7b", seed)
        tab = page.go(f"#replay?scenario={scenario}&a=thinker-7b&seed={seed}", ".panel")
        total = 0.0
        for number, step in enumerate(steps, 1):
            total += step["reward"]
            assert page.text(".count") == f"Round {number} of {len(steps)}"
            letters = re.sub(r"[\d\s]+$|[\s_]", "", step["board"])
            drawn = "".join(page.texts(".board .glyph"))
            assert drawn == re.sub(r"[\s_]", "", step["board"]), letters
            assert page.text(".response") == (shown_as(step["response"]) or "(empty)")
            facts = page.texts(".move .facts dd")
            assert facts[0] == (
                step["action"]
                if step["valid"]
                else f"none: {step['unreadable'].replace('_', ' ')} (the game executed {step['action']})"
            )
            assert facts[1:] == [points(step["reward"]), points(total)]
            assert page.text(".slot") == step["observation"]
            assert page.text(".round details pre").startswith("You play a game.")
            assert page.text("[aria-current=step] button") == str(number)
            tab.keyboard.press("ArrowRight")
        assert page.text(".count").startswith("End")
        assert page.text("[aria-current=step] button") == "End"


def test_keys_step_and_say_what_happened(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=thinker-7b&seed=10003", ".panel")
    last = int(page.text(".count").split()[-1])
    for key, expected in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("End", None),
        ("ArrowRight", None),
        ("Home", 1),
        ("ArrowLeft", 1),
    ):
        tab.keyboard.press(key)
        assert page.text(".count") == (f"Round {expected} of {last}" if expected else f"End, {last} rounds")
        assert page.text("[role=status]").startswith(page.text(".count"))
    tab.keyboard.press("Control+ArrowRight")
    assert page.text(".count") == f"Round 1 of {last}"
    tab.focus("#step-next")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.id") == "step-next"
    tab.focus("#step-slider")  # moves by itself, once
    tab.keyboard.press("ArrowRight")
    assert page.text(".count") == f"Round 3 of {last}"
    tab.focus("#replay-a")  # a list keeps its keys
    tab.keyboard.press("Home")
    assert page.text(".count") in (f"Round 3 of {last}", "Round 3 of 8")
    for name in ("Left", "Right", "Home", "End", "Shift"):
        assert name in page.texts("kbd")


def test_keys_and_buttons_change_the_seed_and_keep_the_focus(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=random&b=thinker-7b&seed=10003", ".panel")
    tab.focus("#step-next")
    tab.keyboard.press("Shift+ArrowRight")
    sync_api.expect(tab.locator("#replay-seed")).to_have_value("10004")
    assert tab.evaluate("document.activeElement.id") == "step-next"
    tab.keyboard.press("Shift+ArrowLeft")
    sync_api.expect(tab.locator("#replay-seed")).to_have_value("10003")
    tab.click("#replay-seed-after")
    sync_api.expect(tab.locator("#replay-seed")).to_have_value("10004")
    assert page.texts(".panel h3") == ["random", "thinker-7b"]


def test_addresses_open_a_step_and_follow_the_stepping(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=thinker-7b&b=random&seed=10003&step=2", ".panel")
    assert page.text(".count").startswith("Round 3 of")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_url(re.compile("step=3$"))
    tab.reload()
    tab.wait_for_selector(".panel")
    assert page.text(".count").startswith("Round 4 of")
    page.go("#replay?scenario=frozen-lake&a=random&seed=123&step=99", ".panel")
    assert page.text(".notice") == "Seed 123 isn't on this page."
    assert page.text(".count").startswith("End")


def test_two_sides_step_together_from_one_start(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=thinker-7b&b=random&seed=10003", ".panel")
    left, right = (tab.locator(f".panel.side-{side}") for side in "ab")
    assert left.locator(".board").get_attribute("aria-label") == right.locator(".board").get_attribute("aria-label")
    left.locator(".moves tbody button").nth(1).click()
    assert [side.locator("[aria-current=step] button").text_content() for side in (left, right)] == ["2", "2"]


def test_play_runs_to_the_end_and_stops(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=thinker-7b&seed=10003", ".panel")
    tab.clock.install()
    page.go("#replay?scenario=frozen-lake&a=thinker-7b&seed=10003", ".panel")
    tab.click("#step-play")
    assert page.text("#step-play") == "Pause"
    tab.clock.run_for(1_000)
    assert page.text(".count").startswith("Round 2")
    tab.clock.run_for(20_000)
    assert page.text(".count").startswith("End")
    assert page.text("#step-play") == "Play"


def test_unscored_and_stepless_episodes(visit: Any, documents: Documents) -> None:
    document = deepcopy(documents["one agent"])
    view = document["episodes"][0]
    view |= {"error": "timeout after 60 s <b>", "terminated": False, "truncated": False}
    view["steps"] = {name: [] for name in view["steps"]}  # type: ignore[assignment]
    view["final_board"] = view["final_observation"] = -1
    page = visit(document)
    page.go(f"#replay?seed={view['seed']}", ".panel")
    assert page.text(".panel .notice") == "Unscored: timeout after 60 s <b>"
    assert page.text(".outcome .bad") == "unscored"
    assert page.text(".count") == "End, 0 rounds"


def test_a_browser_that_cannot_unpack_says_so(visit: Any) -> None:
    page = visit("usual")
    page.context.add_init_script("delete window.DecompressionStream")
    page.go("#replay", "#view-replay .notice")
    assert "DecompressionStream" in page.text("#view-replay .notice")
    page.go("#leaderboard", ".sortable")


def test_history_prompts_and_cut_off_responses(visit: Any, documents: Documents) -> None:
    document = deepcopy(documents["one agent"])
    document["texts"].append("the whole prompt, history and all")
    steps = document["episodes"][0]["steps"]
    steps["prompt"][0] = len(document["texts"]) - 1
    steps["finish_reason"][0] = "length"
    page = visit(document)
    page.go(f"#replay?seed={document['episodes'][0]['seed']}", ".panel")
    assert page.text(".round details pre") == "the whole prompt, history and all"
    assert "cut off at the token limit" in page.text(".move")
    page.tab.keyboard.press("ArrowRight")
    assert page.texts(".round summary") == ["Observation", "Instructions"]
    assert page.texts(".round details pre")[1] == document["scenarios"][0]["instructions"]


# ---------------------------------------------------------------- every reader


EMPTY = {
    "empty": ("There is nothing here yet", "There are no agents here", "There are no episodes on this page"),
    "not played": (
        "No agent has played this scenario",
        "There are no agents here",
        "There are no episodes on this page",
    ),
    "one agent": (None, "There is only one agent here", None),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_states_are_said(visit: Any, name: str) -> None:
    page = visit(name)
    for view, expected in zip(("leaderboard", "compare", "replay"), EMPTY[name], strict=True):
        page.go(f"#{view}", f"#view-{view} .notice" if expected else f"#view-{view} table")
        assert expected is None or expected in page.text(f"#view-{view} .notice")


@pytest.mark.parametrize("name", ["usual", "long names", "hostile", "empty"])
@pytest.mark.parametrize("width", [320, 360, 700, 1000, 1200])
def test_no_width_scrolls_sideways(visit: Any, documents: Documents, name: str, width: int) -> None:
    page = visit(name, viewport={"width": width, "height": 740})
    last = documents[name]["agents"][-1]["name"] if documents[name]["agents"] else ""
    for view in VIEWS:
        tab = page.go("#compare")
        query = tab.evaluate("name => encodeURIComponent(name)", last)
        page.go(view.format(b=query), f"#view-{view[1:].partition('?')[0]} h2")
        tab.wait_for_timeout(50)
        # what scrolls inside its own box is no matter; nothing else may stick out
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
        outside = tab.evaluate(
            """width => [...document.querySelectorAll('main *, header *')].filter((node) => {
                const box = node.getBoundingClientRect();
                return box.width && box.right > width + 1 && !node.closest('pre, .moves-box, .unseen, caption');
            }).map((node) => node.outerHTML.slice(0, 120))""",
            width,
        )
        assert outside == [], view


def test_narrow_screens_sort_with_the_list(visit: Any) -> None:
    page = visit("usual", viewport={"width": 360, "height": 740})
    tab = page.go("", ".sortable")
    bar = tab.locator('.sort-by:has(+ table[data-table="snake"])')
    bar.locator("select").select_option("length")
    assert column(page, "snake", "length") == sorted(column(page, "snake", "length"), key=lambda value: value or 0)
    bar.locator("button").click()
    assert column(page, "snake", "length") == sorted(column(page, "snake", "length"), key=lambda value: -(value or 0))


CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("script, style, .unseen, caption, option")) continue;
    if (node.closest(":disabled, [aria-disabled=true]")) continue;
    const style = getComputedStyle(node);
    const inSvg = node.namespaceURI.endsWith("svg");
    let colour = parse(inSvg ? style.fill : style.color);
    let behind = null;
    if (inSvg && node.classList.contains("glyph")) behind = parse(getComputedStyle(node.previousSibling).fill);
    for (let up = node; up && !behind; up = up.parentElement) {
      const value = parse(getComputedStyle(up).backgroundColor);
      if (value.length === 3 || value[3] > 0) behind = value;
    }
    const [a, b] = [light(colour), light(behind)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 100)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(visit: Any, scheme: str) -> None:
    page = visit("usual", color_scheme=scheme)
    for address in (
        "#leaderboard",
        "#compare?a=thinker-7b",
        "#replay?scenario=snake&a=thinker-7b&b=random&seed=40002&step=1",
    ):
        tab = page.go(address, "table")
        tab.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        found = tab.evaluate(CONTRAST)
        assert len(found) > 50
        assert [one for one in found if one[0] < 4.5] == []


def test_theme_follows_the_system_until_the_reader_chooses(visit: Any) -> None:
    page = visit("usual", color_scheme="dark")
    tab = page.go()
    brightness = "parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert tab.evaluate(brightness) < 50
    tab.emulate_media(color_scheme="light")
    assert tab.evaluate(brightness) > 200
    tab.click("#theme")
    tab.click("#theme")
    assert page.text("#theme") == "Theme: dark"
    assert tab.evaluate(brightness) < 50
    page.go()
    assert page.text("#theme") == "Theme: dark"
    assert tab.evaluate(brightness) < 50


NAMED_ROLES = {"button", "link", "combobox", "slider", "table", "image", "region", "navigation", "columnheader"}


@pytest.mark.parametrize("width", [1200, 360])
def test_screen_readers_find_landmarks_and_names(visit: Any, width: int) -> None:
    """Checks Chromium's own accessibility tree, which is what a screen reader is given."""
    page = visit("usual", viewport={"width": width, "height": 800})
    for address in ("#leaderboard", "#compare", "#replay?scenario=snake&a=thinker-7b&b=random"):
        tab = page.go(address, "table")
        session = page.context.new_cdp_session(tab)
        nodes = [node for node in session.send("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
        roles = [node["role"]["value"] for node in nodes]
        assert [roles.count(role) for role in ("banner", "navigation", "main", "contentinfo", "status")] == [1] * 5
        unnamed = [
            (node["role"]["value"], node.get("nodeId"))
            for node in nodes
            if node["role"]["value"] in NAMED_ROLES and not node.get("name", {}).get("value")
        ]
        assert unnamed == []
        assert len([role for role in roles if role in ("table", "grid")]) >= 1
        assert roles.count("row") > 3
        headings = "[...document.querySelectorAll('h1, h2, h3, h4')].filter((one) => one.checkVisibility())"
        levels = tab.evaluate(f"{headings}.map((one) => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
        assert tab.evaluate("document.documentElement.lang") == "en"
        identifiers = tab.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
        assert len(identifiers) == len(set(identifiers))
        assert tab.evaluate("[...document.querySelectorAll('table')].filter((table) => !table.caption).length") == 0
        assert tab.locator("thead th:not([scope]), tbody th:not([scope])").count() == 0
        assert tab.locator("nav [aria-current=page]").count() == 1


def test_keyboard_reaches_everything_in_order(visit: Any) -> None:
    page = visit("usual")
    tab = page.go("#replay?scenario=snake&a=thinker-7b&b=random", ".panel")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    box = tab.locator(".skip").bounding_box()
    assert box["y"] >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    assert tab.evaluate("location.hash").startswith("#replay")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "replay-scenario"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


# ---------------------------------------------------------------- where it is read from


def test_the_local_server_shows_the_same(browser: Any, documents: Documents) -> None:
    import threading

    with PageServer(render_page(documents["usual"])) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            tab = browser.new_page()
            faults: list[str] = []
            tab.on("console", lambda message: faults.append(message.text))
            tab.goto(server.url + "#replay?scenario=snake&a=random")
            tab.wait_for_selector(".panel .board")
            tab.keyboard.press("ArrowRight")
            assert faults == []
            tab.close()
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_opens_with_five_thousand_episodes(
    visit: Any, documents: Documents, capsys: pytest.CaptureFixture[str]
) -> None:
    document = deepcopy(documents["usual"])
    originals = list(document["episodes"])
    for copy in range(1, 5000 // len(originals) + 1):
        for view in originals:
            # other seeds, and texts of their own, or the page would store them once
            steps: dict[str, Any] = dict(view["steps"])
            first = len(document["texts"])
            document["texts"] += [f"{document['texts'][place]} {copy}" for place in steps["response"]]
            steps["response"] = list(range(first, len(document["texts"])))
            document["episodes"].append(
                view | {"seed": view["seed"] + 100 * copy, "steps": steps, "id": len(document["episodes"])}
            )  # type: ignore[typeddict-item]
    document["episodes"] = document["episodes"][:5000]
    page = visit(document)
    tab = page.go("#replay?scenario=snake&a=random", ".panel")
    assert tab.locator("#replay-seed option").count() > 300
    timing = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    with capsys.disabled():
        size = len(Path(tab.url.partition("#")[0].removeprefix("file://")).read_bytes())
        print(json.dumps({"episodes": 5000, "megabytes": round(size / 1e6, 2), "load_ms": round(timing)}))
