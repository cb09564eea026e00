"""Text that attacks the page is shown, and does nothing."""

from typing import Any

import pytest

from benchmark.score.document import ViewDocument

pytestmark = pytest.mark.browser

Documents = dict[str, ViewDocument]


def test_hostile_text_is_shown_and_does_nothing(visit: Any, documents: Documents) -> None:
    document = documents["hostile"]
    page = visit("hostile")
    seen = set()
    for view in document["episodes"]:
        agent, seed = view["agents"]["player_0"], view["seed"]
        steps = page.steps_of(document, "frozen-lake", agent, seed)
        query = page.go("#compare").evaluate("([a, seed]) => new URLSearchParams({a, seed}).toString()", [agent, seed])
        tab = page.go(f"#replay?{query}", ".panel")
        for step in steps:
            assert page.text(".response") == (page.shown_as(step["response"]) or "(empty)")
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
