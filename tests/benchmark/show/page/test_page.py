"""The page as text: self-contained, inert, complete, small; without a browser."""

import base64
import hashlib
import json
import math
import os
import re
import zlib
from copy import deepcopy
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.cli import main
from benchmark.score.document import ViewDocument
from benchmark.show.page import render_page, write_page
from benchmark.show.page.pack import inert_json, pack_episodes
from benchmark.show.page.page import SCRIPTS
from benchmark.show.page.tables import DASH, MINUS, scenario_index, scenario_section
from benchmark.show.table import number

Documents = dict[str, ViewDocument]


class Reader(HTMLParser):
    """Collects the elements of a page, and the text of its script and style elements, as an HTML parser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw.append((self._inside, data))
        else:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.parametrize("name", ["usual", "hostile", "one agent", "empty", "not played", "long names"])
def test_needs_nothing_from_elsewhere(documents, name):
    reader = Reader(render_page(documents[name]))
    for tag, attributes in reader.tags:
        assert "src" not in attributes, tag
        assert not any(attribute.startswith("on") or attribute == "style" for attribute in attributes), (
            tag,
            attributes,
        )
        address = attributes.get("href") or ""
        assert address.startswith(("#", "data:,")) or not address, address
    style = "".join(text for tag, text in reader.raw if tag == "style")
    assert "@import" not in style
    assert "url(" not in style
    script_types = [attributes.get("type") for attributes in reader.all("script")]
    assert script_types.count(None) == 1
    assert set(script_types) <= {None, "application/json", "text/plain"}


def test_policy_admits_the_two_inline_elements_and_no_other_source(documents):
    reader = Reader(render_page(documents["usual"]))
    policy = next(a["content"] for a in reader.all("meta") if a.get("http-equiv") == "Content-Security-Policy") or ""
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        texts = [text for name, text in reader.raw if name == tag]
        digest = hashlib.sha256(texts[-1].encode()).digest()
        assert directives[directive] == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_script_never_makes_html_of_strings():
    for name in SCRIPTS:
        source = files("benchmark.show.page").joinpath("assets", name).read_text(encoding="utf-8")
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser", source
        )
        assert found is None, (name, found)


def test_hostile_text_adds_no_element(documents):
    hostile = documents["hostile"]
    harmless = deepcopy(hostile)
    for episode in harmless["episodes"]:
        episode["steps"]["response"] = ["harmless"] * len(episode["steps"]["response"])
    page = render_page(hostile)
    found = sorted(tag for tag, _ in Reader(page).tags if tag != "bdi")
    expected = sorted(tag for tag, _ in Reader(render_page(harmless)).tags if tag != "bdi")
    # fewer texts may make fewer blocks, nothing else may differ
    assert [tag for tag in found if tag != "script"] == [tag for tag in expected if tag != "script"]
    assert "img" not in found
    assert "window.pwned = 1'>" not in page
    assert "\0" not in page


def unpack(document: ViewDocument) -> list[dict[str, Any]]:
    """The episodes of a page, read back as a browser reads them."""
    episodes = []
    for block in pack_episodes(document).blocks:
        data = json.loads(zlib.decompress(base64.b64decode(block)))
        for episode in data["episodes"]:
            texts = [*data["texts"], None]  # -1 is none
            for column in ("board", "observation", "response"):
                episode[column] = [texts[place] for place in episode[column]]
            told = [each and [(role, texts[place]) for role, place in each] for each in episode["prompt"]]
            episode["prompt"] = told
            episode["final_board"] = texts[episode["final_board"]]
            episodes.append(episode)
    return episodes


@pytest.mark.parametrize("name", ["usual", "hostile", "empty"])
def test_every_episode_comes_back_whole(documents, name, monkeypatch):
    monkeypatch.setattr("benchmark.show.page.pack.BLOCK_CHARS", 3_000)  # so that there are several blocks
    document = documents[name]
    listing = pack_episodes(document).listing
    assert name == "empty" or len(listing["block_sizes"]) > 1
    read = unpack(document)
    assert len(read) == len(document["episodes"]) == sum(listing["block_sizes"])
    seen = set()
    for place, episode in enumerate(read):
        scenario = document["scenarios"][listing["scenario"][place]]["name"]
        agents = [document["agents"][agent]["name"] for agent in listing["lineups"][listing["lineup"][place]]]
        key = (scenario, listing["seed"][place], tuple(agents))
        seen.add(key)
        original = next(
            view
            for view in document["episodes"]
            if (view["scenario"], view["seed"], tuple(view["agents"].values())) == key
        )
        steps = original["steps"]
        for column in episode.keys() & steps.keys() - {"reasoning", "happened", "valid"}:
            assert episode[column] == steps[column]  # type: ignore[literal-required]
        assert episode["final_board"] == original["final_board"]
        assert listing["returns"][place] == list(original["returns"].values())
        assert listing["invalid"][place] == steps["valid"].count(False)
    assert len(seen) == len(read)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters()) | st.sampled_from(["</script>", "<!--", "\u2028", "\0", "&lt;", "\ud800"]))
def test_inert_json_is_json_without_markup(text):
    written = inert_json({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert written.isascii()
    assert not set("<>&\u2028\0") & set(written)


def test_page_is_small_before_its_episodes(documents):
    document = deepcopy(documents["usual"])
    document["episodes"] = []
    assert len(render_page(document).encode()) < 180_000
    assert len(render_page(documents["empty"]).encode()) < 110_000


def test_tables_hold_the_documents_numbers(documents):
    document = documents["usual"]
    for scenario in document["scenarios"]:
        table = scenario_section(document, scenario).tables[0]
        scores = {score["agent"]: score for score in document["scores"] if score["scenario"] == scenario["name"]}
        assert [row[1].text for row in table.rows] == sorted(scores, key=lambda name: scores[name]["rank"] or 0)
        for rank, agent, mean, *_ in table.rows:
            score = scores[agent.text]
            assert score["mean_return"]
            assert rank.text == f"{score['rank']}{'=' if score['tied'] else ''}"
            value, low, high = (
                number(score["mean_return"][key]).replace("-", MINUS) for key in ("value", "low", "high")
            )
            assert (mean.text, mean.interval) == (value, f"[{low}, {high}]")
            assert mean.bar
            assert 0 <= mean.bar.low <= mean.bar.value <= mean.bar.high <= 100
            assert all(0 <= mark <= 100 for mark in mean.bar.marks)


def test_unranked_agents_are_last_and_say_why(documents):
    document = deepcopy(documents["usual"])
    score = next(score for score in document["scores"] if score["scenario"] == "snake" and score["rank"] == 1)
    score |= {"rank": None, "unscored": 2, "planned": 9, "errors": {"time_out": 2}}
    table = scenario_section(document, document["scenarios"][2]).tables[0]
    agent = table.rows[-1][1]
    assert agent.text == score["agent"]
    assert agent.note == "not ranked, 2 unscored, 1 of 9 not played, which favours short episodes, as they end first"
    assert table.rows[-1][0].text == DASH
    assert table.rows[-1][-1].note == "time out 2"


def test_an_agent_without_a_scored_episode_has_dashes(documents):
    document = deepcopy(documents["usual"])
    names = ("mean_return", "normalized", "success_rate", "invalid_rate", "length", "tokens")
    for score in document["scores"]:
        score |= {"rank": None, "episodes": 0, "unscored": 6, **dict.fromkeys(names)}  # type: ignore[typeddict-item]
    table = scenario_section(document, document["scenarios"][0]).tables[0]
    means = [row[[column.key for column in table.columns].index("mean_return")] for row in table.rows]
    assert {mean.text for mean in means} == {DASH}
    assert all(mean.bar is None and mean.sort is None for mean in means)
    assert render_page(document)


def test_numbers_are_set_with_a_real_minus_and_no_negative_zero(documents):
    document = deepcopy(documents["usual"])
    for score, value in zip(document["scores"], (-0.0001, -1.5), strict=False):
        score["mean_return"] = {"value": value, "low": None, "high": None}
    rows = scenario_section(document, document["scenarios"][0]).tables[0].rows
    assert [row[2].text for row in rows[:2]] == ["0.000", f"{MINUS}1.500"]


def test_shared_ranks_and_what_a_score_above_1_means_are_said(documents):
    document = deepcopy(documents["usual"])
    for score in document["scores"]:
        score |= {"rank": 1, "tied": True, "normalized": {"value": 1.2, "low": 0.9, "high": 1.5}, "above_blind": True}
    document["scores"][0]["above_blind"] = False
    table = scenario_section(document, document["scenarios"][0]).tables[0]
    assert [row[0].text for row in table.rows] == ["1="] * 3
    luck = "A score may exceed 1: optimal is what perfect play gets on average, and luck may bring more."
    assert table.notes == [luck, f"no better than blind play, within chance: {document['scores'][0]['agent']}"]
    assert table.notes[0] in render_page(document)


def test_who_is_merely_not_told_apart_from_the_best_is_not_the_best(documents):
    """A scenario's "tie" listed a player at -0.45 beside one at 1.00."""
    document = deepcopy(documents["usual"])
    name = document["scenarios"][0]["name"]
    scores = [score for score in document["scores"] if score["scenario"] == name]
    for score, value in zip(scores, (1.0, 1.0 - 1e-12, -0.45), strict=True):
        figure = {"value": value, "low": value - 1, "high": value + 1}
        score |= {"rank": 1, "tied": True, "normalized": figure, "luck_free_return": None, "mean_return": figure}
    (best, *_), column = [row for row in scenario_index(document).rows if row[0].text == name], 5
    assert best[column].text == f"tie: {scores[0]['agent']}, {scores[1]['agent']}; 1 not told apart"
    scores[1]["mean_return"] = {"value": 0.5, "low": 0.0, "high": 1.0}
    (best,) = [row for row in scenario_index(document).rows if row[0].text == name]
    assert best[column].text == f"{scores[0]['agent']}; 2 not told apart"


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


def test_names_that_utf8_cannot_hold_are_replaced(documents):
    document = deepcopy(documents["empty"])
    document["title"] = "half \ud800 and \0"
    assert "<title>half \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER}</title>" in render_page(document)


def test_a_real_run_becomes_a_page(tmp_path):
    run, target = str(tmp_path / "run"), tmp_path / "page.html"
    played = ["--agent", "random", "--agent", "greedy", "--scenario", "frozen-lake", "--scenario", "snake-duel"]
    assert main(["run", *played, "--episodes", "2", "--out", run, "--quiet"]) == 0
    assert main(["leaderboard", run, "--html", str(target), "--quiet"]) == 0
    reader = Reader(target.read_text(encoding="utf-8"))
    data = json.loads(next(text for tag, text in reader.raw if tag == "script" and text.startswith('{"scenarios"')))
    assert [scenario["name"] for scenario in data["scenarios"]] == ["frozen-lake", "snake-duel"]
    assert {agent["name"] for agent in data["agents"]} == {"random", "greedy"}
    assert data["index"]["scenario"].count(0) == 4
    assert data["scenarios"][0]["legend"]["G"] == "goal"
    captions = [text for text in reader.text if ": scores" in text]
    assert captions == [f"{name}: scores, intervals over starts" for name in ("frozen-lake", "snake-duel")]


def test_a_page_is_written_to_a_file_and_nothing_else(tmp_path, capsys):
    run, target, link, pipe = (tmp_path / name for name in ("run", "page.html", "link.html", "pipe"))
    assert main(["run", "--agent", "random", "--scenario", "bandit", "--episodes", "1", "--out", str(run)]) == 0
    link.symlink_to("page.html")
    assert main(["leaderboard", str(run), "--html", str(link), "--quiet"]) == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("<!")
    os.mkfifo(pipe)
    capsys.readouterr()
    for html, said in ((str(pipe), f"can't write {pipe}: it is a device or a pipe"), ("-", "--html takes a file")):
        assert main(["leaderboard", str(run), "--html", html, "--quiet"]) in (1, 2)
        told = capsys.readouterr().err
        assert told.startswith(f"textbench: {said}")
        assert told.count("\n") == 1
    assert pipe.is_fifo()
    assert not Path("-").exists()


def test_refuses_what_it_cannot_draw(documents):
    document = deepcopy(documents["one agent"])
    document["episodes"][0]["steps"]["reward"][0] = math.nan
    with pytest.raises(ValueError, match="JSON compliant"):
        render_page(document)


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
    assert target.read_bytes() == old
    assert list(tmp_path.iterdir()) == [target]
