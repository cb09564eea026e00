"""The replay of episodes: what it shows, how it is stepped, the addresses that lead to it, and hostile texts."""

import re
from copy import deepcopy

import pytest

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect


def test_replay_shows_every_step_as_it_was_played(visit, documents):
    page = visit("usual")
    told = {""}
    for scenario, seed in (("frozen-lake", 10_003), ("snake", 40_002)):
        steps = page.steps_of(documents["usual"], scenario, "thinker-7b", seed)
        tab = page.go(f"#replay?scenario={scenario}&a=thinker-7b&seed={seed}", ".panel")
        total = 0.0
        for number, step in enumerate(steps, 1):
            total += step["reward"]
            assert page.text(".count") == f"Round {number} of {len(steps)}"
            assert "".join(page.texts(".board .glyph")) == re.sub(r"[\s_]", "", step["board"])
            assert page.text(".response") == (page.shown_as(step["response"]) or "(empty)")
            facts = page.texts(".move .facts dd")
            why = f"none: {(step['unreadable'] or '').replace('_', ' ')} (the game executed {step['action']})"
            assert facts[0] == (step["action"] if step["valid"] else why)
            happened = [step["happened"]] * bool(step["happened"])
            better = "" if step["best"] == step["action"] else f", best: {step['best']}"
            lost = [] if step["lost"] is None else [f"{page.points(step['lost'])}{better}"]
            assert bool(lost) is (scenario == "frozen-lake")
            assert facts[1:] == [*happened, page.points(step["reward"]), page.points(total), *lost]
            told |= {step["happened"]}
            assert page.texts(".round details pre") == [content for _, content in step["prompt"]]
            assert step["observation"] in page.text(".round details pre")
            assert page.text("[aria-current=step] button") == str(number)
            tab.keyboard.press("ArrowRight")
        assert page.text(".count").startswith("End")
        assert page.text("[aria-current=step] button") == "End"
        endings = {view["ending"] for view in documents["usual"]["episodes"]}
        assert page.text(".end").removeprefix("The episode ").removesuffix(".") in endings
    assert len(told) > 1, "these episodes show nothing of what happened: take others"


def test_keys_and_buttons_step_change_the_seed_and_say_what_happened(visit):
    page = visit("usual")
    tab = page.go("#replay?scenario=frozen-lake&a=random&b=thinker-7b&seed=10003&order=seed", ".panel")
    last = int(page.text(".count").split()[-1])
    for key, expected in (("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowLeft", 1), ("End", None), ("Home", 1)):
        tab.keyboard.press(key)
        assert page.text(".count") == (f"Round {expected} of {last}" if expected else f"End, {last} rounds")
        assert page.text("[role=status]").startswith(page.text(".count"))
    tab.focus("#step-slider")  # moves by itself, once
    tab.keyboard.press("ArrowRight")
    assert page.text(".count") == f"Round 2 of {last}"
    tab.focus("#replay-b")  # a list keeps its keys
    tab.keyboard.press("End")
    assert not page.text(".count").startswith("End")
    tab.focus("#step-next")
    for step, seed in (("ArrowRight", "10004"), ("ArrowLeft", "10003")):
        tab.keyboard.press(f"Shift+{step}")
        expect(tab.locator("#replay-seed")).to_have_value(seed)
        assert tab.evaluate("document.activeElement.id") == "step-next"
    tab.click("#replay-seed-after")
    expect(tab.locator("#replay-seed")).to_have_value("10004")


def test_two_sides_step_together_play_to_the_end_and_have_an_address_at_every_step(visit):
    page = visit("usual")
    address = "#replay?scenario=frozen-lake&a=thinker-7b&b=random&seed=10003&step="
    tab = page.go(f"{address}2", ".panel")
    assert page.text(".count").startswith("Round 3 of")
    left, right = (tab.locator(f".panel.side-{side}") for side in "ab")
    left.locator(".moves tbody button").nth(1).click()
    assert [side.locator("[aria-current=step] button").text_content() for side in (left, right)] == ["2", "2"]
    tab.wait_for_url(re.compile("step=1$"))
    tab.reload()
    tab.wait_for_selector(".panel")
    assert page.text(".count").startswith("Round 2 of")
    tab.clock.install()
    page.go(f"{address}0", ".panel")
    assert left.locator(".board").get_attribute("aria-label") == right.locator(".board").get_attribute("aria-label")
    tab.click("#step-play")
    assert page.text("#step-play") == "Pause"
    tab.clock.run_for(1_000)
    assert page.text(".count").startswith("Round 2")
    tab.clock.run_for(20_000)
    assert page.text(".count").startswith("End")
    assert page.text("#step-play") == "Play"
    page.go("#replay?scenario=frozen-lake&a=random&seed=123&step=99", ".panel")
    assert page.text(".notice") == "Seed 123 isn't on this page."


def test_failures_come_first_and_seeds_can_be_put_in_the_order_of_the_value_lost(visit, documents):
    document = deepcopy(documents["usual"])
    for view in document["episodes"]:
        if view["scenario"] == "frozen-lake":
            view["steps"]["lost"][0] = (view["seed"] * 7 % 5) / 4  # episodes of a lake often lose the same
    page, key = visit(document), ("snake", "thinker-7b")
    views = [view for view in document["episodes"] if (view["scenario"], view["agents"].get("player_0")) == key]
    wrong = {one["seed"] for one in views if not (one["successes"]["player_0"] and all(one["steps"]["valid"]))}
    assert 1 < len(wrong) < len(views), "these episodes show no difference: take others"
    tab = page.go("#replay?scenario=snake&a=thinker-7b", ".panel")
    offered = [text.split()[0] for text in page.texts("#replay-seed option")]
    assert set(map(int, offered[: len(wrong)])) == wrong
    tab.click("#replay-failure")
    expect(tab.locator("#replay-seed")).to_have_value(offered[1])

    tab = page.go("#replay?scenario=frozen-lake&a=random", ".panel")
    tab.select_option("#replay-order", "lost")
    tab.wait_for_url(re.compile("order=lost"))
    steps = {seed: page.steps_of(document, "frozen-lake", "random", seed) for seed in range(10_000, 10_006)}
    lost = {str(seed): sum(step["lost"] for step in own) for seed, own in steps.items()}
    seeds = tab.locator("#replay-seed option").evaluate_all("options => options.map((option) => option.value)")
    assert seeds == sorted(lost, key=lambda seed: (-lost[seed], seed)) != sorted(lost)
    assert f"lost {page.points(lost[seeds[0]])}" in page.text("#replay-seed option")
    tab.keyboard.press("End")
    tab.wait_for_url(re.compile("order=lost&step="))  # the order outlasts the stepping
    tab.select_option("#replay-order", "seed")
    expect(tab.locator("#replay-seed option").first).to_contain_text("10000")


def test_what_is_odd_about_an_episode_is_shown(visit, documents):
    """Reasoning, a history, a response that was cut off; an error before a step; a browser that can't unpack."""
    document = deepcopy(documents["one agent"])
    first, second = document["episodes"]
    steps = first["steps"]
    steps["prompt"][0], steps["reasoning"][0] = [("user", "history and all")], "<b>The goal is near.</b>"
    steps["finish_reason"][0] = "length"
    second |= {"error": "timeout after 60 s <b>", "terminated": False, "truncated": False}
    second["steps"] = {name: [] for name in second["steps"]}
    second["final_board"] = second["final_observation"] = None
    page = visit(document)
    page.go(f"#replay?seed={first['seed']}", ".panel")
    assert page.texts(".round details pre") == ["<b>The goal is near.</b>", "history and all"]
    assert "cut off at the token limit" in page.text(".move")
    page.tab.keyboard.press("ArrowRight")
    assert page.texts(".round details pre")[1] == document["scenarios"][0]["instructions"]
    page.go(f"#replay?seed={second['seed']}", ".panel")
    assert page.text(".panel .notice") == "Unscored: timeout after 60 s <b>"
    assert page.text(".count") == "End, 0 rounds"
    page.context.add_init_script("delete window.DecompressionStream")
    page.go("#replay", "#view-replay .notice")
    assert "DecompressionStream" in page.text("#view-replay .notice")
    page.go("#leaderboard", ".sortable")


def test_hostile_text_is_shown_and_does_nothing(visit, documents):
    document = documents["hostile"]
    page = visit("hostile")
    seen = set()
    for view in document["episodes"]:
        agent, seed = view["agents"]["player_0"], view["seed"]
        query = page.go("#compare").evaluate("([a, seed]) => new URLSearchParams({a, seed}).toString()", [agent, seed])
        tab = page.go(f"#replay?{query}", ".panel")
        for step in page.steps_of(document, "frozen-lake", agent, seed):
            assert page.text(".response") == (page.shown_as(step["response"]) or "(empty)")
            seen.add(step["response"])
            tab.keyboard.press("ArrowRight")
        assert tab.evaluate("window.pwned") is None
    page.go("#leaderboard", ".sortable")
    added = "[window.pwned, document.images.length, document.querySelectorAll('iframe, base').length]"
    assert page.tab.evaluate(added) == [None, 0, 0]
    assert len(seen) > 6  # all the attacks were on show


def test_hostile_addresses_fall_back_to_what_there_is(visit):
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
