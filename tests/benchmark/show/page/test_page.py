"""The page as text: self-contained, inert, complete, small; without a browser."""

import base64
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import zlib
from copy import deepcopy
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.cli import main
from benchmark.score.document import ViewDocument
from benchmark.show.document_of import _scenario_view
from benchmark.show.page import render_page, write_page
from benchmark.show.page.page import SCRIPTS, inert_json, pack_episodes
from benchmark.show.page.tables import DASH, MINUS, scenario_index, scenario_section
from tests.benchmark.helpers import Reader
from textgames import SCENARIOS

Documents = dict[str, ViewDocument]


@pytest.mark.parametrize("name", ["usual", "hostile", "one agent", "empty", "not played", "long names"])
def test_needs_nothing_from_elsewhere(documents, name):
    reader = Reader(render_page(documents[name]))
    for tag, attributes in reader.tags:
        assert not [one for one in attributes if one.startswith("on") or one in ("style", "src")], (tag, attributes)
        address = attributes.get("href") or "#"
        assert address.startswith(("#", "data:,")), address
    style = "".join(text for tag, text in reader.raw if tag == "style")
    assert not re.search(r"@import|url\(", style)
    script_types = [attributes.get("type") for tag, attributes in reader.tags if tag == "script"]
    assert script_types.count(None) == 1
    assert set(script_types) <= {None, "application/json", "text/plain"}


def test_policy_admits_the_two_inline_elements_whose_script_never_makes_html_of_strings(documents):
    reader = Reader(render_page(documents["usual"]))
    metas = [attributes for tag, attributes in reader.tags if tag == "meta"]
    policy = next(one["content"] for one in metas if one.get("http-equiv") == "Content-Security-Policy")
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        texts = [text for name, text in reader.raw if name == tag]
        digest = hashlib.sha256(texts[-1].encode()).digest()
        assert directives[directive] == f"'sha256-{base64.b64encode(digest).decode()}'"
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
    for name in SCRIPTS:
        source = files("benchmark.show.page").joinpath("assets", name).read_text(encoding="utf-8")
        assert re.search(forbidden, source) is None, name


def test_hostile_text_adds_no_element(documents):
    hostile = documents["hostile"]
    harmless = deepcopy(hostile)
    for episode in harmless["episodes"]:
        episode["steps"]["response"] = ["harmless"] * len(episode["steps"]["response"])
    page = render_page(hostile)
    found, expected = (
        sorted(tag for tag, _ in Reader(one).tags if tag not in ("bdi", "script"))  # fewer texts make fewer blocks
        for one in (page, render_page(harmless))
    )
    assert found == expected
    assert "img" not in found
    assert "window.pwned = 1'>" not in page
    assert "\0" not in page


@pytest.mark.parametrize("name", ["usual", "hostile", "empty"])
def test_every_episode_comes_back_whole(documents, name, monkeypatch):
    """As a browser reads them, of several blocks."""
    monkeypatch.setattr("benchmark.show.page.page.BLOCK_CHARS", 3_000)
    document, (listing, blocks) = documents[name], pack_episodes(documents[name])
    assert name == "empty" or len(listing["block_sizes"]) > 1
    originals = {(one["scenario"], one["seed"], *one["agents"].values()): one for one in document["episodes"]}
    place = 0
    for block in blocks:
        data = json.loads(zlib.decompress(base64.b64decode(block)))
        texts = [*data["texts"], None]  # -1 is none
        for episode in data["episodes"]:
            agents = [document["agents"][agent]["name"] for agent in listing["lineups"][listing["lineup"][place]]]
            scenario = document["scenarios"][listing["scenario"][place]]["name"]
            original = originals.pop((scenario, listing["seed"][place], *agents))
            steps = original["steps"]
            for column in ("board", "observation", "response"):
                assert [texts[one] for one in episode[column]] == steps[column]
            prompts = [each and [[role, texts[one]] for role, one in each] for each in episode["prompt"]]
            assert prompts == steps["prompt"]
            for column in ("round", "player", "action", "unreadable", "reward", "lost", "best"):
                assert episode[column] == steps[column]
            assert texts[episode["final_board"]] == original["final_board"]
            assert listing["returns"][place] == list(original["returns"].values())
            assert listing["invalid"][place] == steps["valid"].count(False)
            place += 1
    assert not originals
    assert place == sum(listing["block_sizes"])


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters()) | st.sampled_from(["</script>", "<!--", "\u2028", "\0", "&lt;", "\ud800"]))
def test_inert_json_is_json_without_markup(text):
    written = inert_json({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert written.isascii()
    assert not set("<>&\u2028\0") & set(written)


def test_page_is_small_before_its_episodes_and_holds_what_utf8_cannot_and_no_nan(documents):
    document = {**documents["usual"], "episodes": []}
    assert len(render_page(document).encode()) < 180_000
    odd = {**documents["empty"], "title": "half \ud800 and \0"}
    assert "<title>half \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER}</title>" in render_page(odd)
    broken = deepcopy(documents["one agent"])
    broken["episodes"][0]["steps"]["reward"][0] = math.nan
    with pytest.raises(ValueError, match="JSON compliant"):
        render_page(broken)


def test_bars_lie_on_their_scale_in_the_order_of_their_ends(documents):
    for scenario in documents["usual"]["scenarios"]:
        for _, _, mean, *_ in scenario_section(documents["usual"], scenario).tables[0].rows:
            assert 0 <= mean.bar.low <= mean.bar.value <= mean.bar.high <= 100
            assert all(0 <= mark <= 100 for mark in mean.bar.marks)


def test_unranked_agents_are_last_and_say_why_and_what_is_unknown_is_a_dash(documents):
    document = deepcopy(documents["usual"])
    score = next(score for score in document["scores"] if score["scenario"] == "snake" and score["rank"] == 1)
    score |= {"rank": None, "unscored": 2, "planned": 9, "errors": {"time_out": 2}}
    rank, agent, *_, last = scenario_section(document, document["scenarios"][2]).tables[0].rows[-1]
    assert (rank.text, agent.text, last.note) == (DASH, score["agent"], "time out 2")
    assert agent.note == "not ranked, 2 unscored, 1 of 9 not played, which favours short episodes, as they end first"
    for score, value in zip(document["scores"], (-0.0001, -1.5), strict=False):
        score["mean_return"] = {"value": value, "low": None, "high": None}
    rows = scenario_section(document, document["scenarios"][0]).tables[0].rows
    assert [row[2].text for row in rows[:2]] == ["0.000", f"{MINUS}1.500"]
    names = ("mean_return", "normalized", "success_rate", "invalid_rate", "length", "tokens")
    for score in document["scores"]:
        score |= {"rank": None, "episodes": 0, "unscored": 6, **dict.fromkeys(names)}
    rows = scenario_section(document, document["scenarios"][0]).tables[0].rows
    assert {(row[3].text, row[3].bar, row[3].sort) for row in rows} == {(DASH, None, None)}
    assert render_page(document)


def test_shared_ranks_are_said_and_who_is_merely_not_told_apart_is_not_the_best(documents):
    """A scenario's "tie" listed a player at -0.45 beside one at 1.00."""
    document = deepcopy(documents["usual"])
    name = document["scenarios"][0]["name"]
    scores = [score for score in document["scores"] if score["scenario"] == name]
    for score, value in zip(scores, (1.2, 1.2 - 1e-12, -0.45), strict=True):
        figure = {"value": value, "low": value - 1, "high": value + 1}
        score |= {"rank": 1, "tied": True, "normalized": figure, "luck_free_return": None, "mean_return": figure}
        score["above_blind"] = value > 0
    table = scenario_section(document, document["scenarios"][0]).tables[0]
    assert [row[0].text for row in table.rows] == ["1="] * 3
    luck = "A score may exceed 1: optimal is what perfect play gets on average, and luck may bring more."
    assert table.notes == [luck, f"no better than blind play, within chance: {scores[2]['agent']}"]
    (best,) = [row[5].text for row in scenario_index(document).rows if row[0].text == name]
    assert best == f"tie: {scores[0]['agent']}, {scores[1]['agent']}; 1 not told apart"


def test_ratings_say_what_they_cant_say(documents):
    document = deepcopy(documents["usual"])
    first, *others = document["ratings"]
    first |= {"rating": None, "group": 2, "games": 1}
    for rating in others:
        rating["in_cycle"] = True
    duel = next(scenario for scenario in document["scenarios"] if scenario["num_players"] == 2)
    table = scenario_section(document, duel).tables[1]
    assert f"no finite rating: {first['agent']} won all games, or lost all, against each opponent" in table.notes
    assert any("beat each other in a circle" in note for note in table.notes)
    assert f"a single game: {first['agent']}" in table.notes
    assert DASH in {row[1].text for row in table.rows}


def test_a_real_run_becomes_a_page_in_a_file_and_nothing_else(tmp_path, capsys):
    run, target, link, pipe = (tmp_path / name for name in ("run", "page.html", "link.html", "pipe"))
    played = ["--agent", "random", "--agent", "greedy", "--scenario", "frozen-lake", "--scenario", "snake-duel"]
    assert main(["run", *played, "--episodes", "2", "--out", str(run), "--quiet"]) == 0
    link.symlink_to("page.html")
    assert main(["leaderboard", str(run), "--html", str(link), "--quiet"]) == 0
    assert link.is_symlink()
    reader = Reader(target.read_text(encoding="utf-8"))
    data = json.loads(next(text for tag, text in reader.raw if tag == "script" and text.startswith('{"scenarios"')))
    assert [scenario["name"] for scenario in data["scenarios"]] == ["frozen-lake", "snake-duel"]
    assert {agent["name"] for agent in data["agents"]} == {"random", "greedy"}
    assert data["index"]["scenario"].count(0) == 4
    assert data["scenarios"][0]["legend"]["G"] == "goal"
    captions = [text for text in reader.text if ": scores" in text]
    assert captions == [f"{name}: scores, intervals over starts" for name in ("frozen-lake", "snake-duel")]
    os.mkfifo(pipe)
    capsys.readouterr()
    for html, said in ((str(pipe), f"can't write {pipe}: it is a device or a pipe"), ("-", "--html takes a file")):
        assert main(["leaderboard", str(run), "--html", html, "--quiet"]) in (1, 2)
        told = capsys.readouterr().err
        assert (told.startswith(f"textbench: {said}"), told.count("\n")) == (True, 1)
    assert pipe.is_fifo()
    assert not Path("-").exists()


def test_a_failed_write_keeps_the_old_page(documents, tmp_path, monkeypatch):
    target = tmp_path / "index.html"
    size = write_page(documents["one agent"], target)
    old = target.read_bytes()
    assert len(old) == size

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_page(documents["empty"], target)
    assert (target.read_bytes(), list(tmp_path.iterdir())) == (old, [target])


STUBS = """
const labels = [];
const visible = (text) => text;
const svg = (name, attributes, ...children) => {
  if (attributes.class === "axis") labels.push(children[0]);
  return { firstChild: { setAttribute() {} }, append() {}, attributes };
};
"""


def drawn(name, state):
    """The labels along a board as the page draws it, and the board in words."""
    scenario = SCENARIOS[name]
    board = "\n".join(scenario.game().board(state))
    script = (files("benchmark") / "show/page/assets/replay/board.js").read_text(encoding="utf-8")
    call = f"const made = drawBoard({json.dumps(board)}, null, {json.dumps(_scenario_view(scenario))}, 'Board:');"
    told = "console.log(JSON.stringify([labels, made.attributes['aria-label']]));"
    done = subprocess.run(["node"], input=STUBS + script + call + told, capture_output=True, text=True, check=True)
    labels, words = json.loads(done.stdout)
    return labels, words


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the page's script")
def test_boards_name_their_cells_as_the_prompts_do():
    """Letters and rows from below; cells and no walls; other boards from the bottom left."""
    game, rng = SCENARIOS["tic-tac-toe"].game(), np.random.default_rng(0)
    state, _, _ = game.transition(game.initial_state(rng), {"player_0": "a3"}, rng)
    assert drawn("tic-tac-toe", state) == (["3", "2", "1", "a", "b", "c"], "Board: player_0 at a3")
    game = SCENARIOS["taxi"].game()
    state = game.initial_state(np.random.default_rng(1))
    labels, words = drawn("taxi", state)
    assert labels == ["4", "3", "2", "1", "0", "0", "", "1", "", "2", "", "3", "", "4"]
    assert all(said in words for said in ("taxi at (1, 2)", "passenger at (3, 0)", "wall at right of (1, 4)"))
    assert all(said in game.observe(state, "player_0") for said in ("Taxi: (1, 2)", "waiting at blue (3, 0)"))
    labels, words = drawn("frozen-lake", SCENARIOS["frozen-lake"].game().initial_state(np.random.default_rng(1)))
    assert labels == ["3", "2", "1", "0", "0", "1", "2", "3"]
    assert all(said in words for said in ("player at (0, 3)", "goal at (3, 0)"))
