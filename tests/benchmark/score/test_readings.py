"""Form told from decision: what the lenient reading makes of a perfect player in bold, and of a babbler."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import benchmark
from agents.baselines.search import PlannerPlayer
from benchmark.runs.folder import RunFolder
from benchmark.score import beside
from tests.benchmark.helpers import lines_of, write_lines

GAMES = ("frozen-lake", "tic-tac-toe", "guess-number", "snake")
EPISODES = 5


class Bold(PlannerPlayer):
    """Plays perfectly, and writes ``**right**.``; after a refusal it writes as it should."""

    name = "bold"

    def act(self, requests):
        asked = zip(requests, super().act(requests), strict=True)
        return [turn if request.refused else in_bold(turn) for request, turn in asked]


class Babbler(Bold):
    """Writes a random name in the same form."""

    name = "babbler"

    def act(self, requests):
        drawn = [request.legal_actions or tuple(map(str, range(1, 101))) for request in requests]
        return [
            replace(turn, response=f"Well, **{np.random.default_rng(request.seed).choice(names)}**.")
            for request, turn, names in zip(requests, super().act(requests), drawn, strict=True)
        ]


def in_bold(turn):
    name = turn.response.rpartition("<action>")[2].removesuffix("</action>")
    return replace(turn, response=f"**{name}**.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("readings")
        patch.setenv("TEXTBENCH_CACHE_DIR", str(place / "cache"))
        agents = {"bold": Bold(), "babbler": Babbler(), "random": "random"}
        benchmark.evaluate(agents, scenarios=GAMES, episodes=EPISODES, out=place / "run", quiet=True)
        yield place / "run"


def test_a_perfect_player_in_bold_is_invalid_and_optimal_and_a_babbler_is_not(folder, textbench):
    document = json.loads(textbench("leaderboard", folder, "--json").out)
    assert {row["invalid_rate"]["value"] for row in document["scores"] if row["agent"] != "random"} == {1.0}
    rows = {(row["agent"], row["scenario"]): row for row in document["readings"]}
    assert {agent for agent, _ in rows} == {"bold", "babbler"}  # all of random's answers could be read
    for game in GAMES:
        bold, babbler = rows["bold", game], rows["babbler", game]
        assert bold["invalid"]["value"] == bold["read"]["value"] == babbler["read"]["value"] == 1.0
        if game == "snake":  # whose values aren't known
            assert bold["optimal"] is bold["lost"] is None
        else:
            assert (bold["optimal"]["value"], bold["lost"]) == (1.0, pytest.approx(0.0))
            assert babbler["optimal"]["value"] < 0.95
            assert game == "guess-number" or abs(babbler["chance"] - babbler["optimal"]["value"]) < 0.15
            assert babbler["lost"] > 0.01
    told = textbench("leaderboard", folder, "--stats").out
    assert "lenient reading" in told
    textbench("leaderboard", folder, "--html", folder.parent / "page.html")
    assert "Lenient reading</h3>" in (folder.parent / "page.html").read_text()


def test_rescoring_counts_the_first_decision_that_differs_from_what_was_executed(folder, textbench):
    done = textbench("rescore", folder, "--json", "--agent", "bold")
    assert done.code == 0
    (row,) = (row for row in json.loads(done.out)["readings"] if row["scenario"] == "frozen-lake")
    answers, first = 0, []
    for record in RunFolder.open(folder).records():
        if (record.scenario, record.agents) == ("frozen-lake", {"player_0": "bold"}):
            answers += len(record.steps)
            first += [step.index + 1 for step in record.steps if step.turn.response != f"**{step.action}**."][:1]
    counts = row["counts"]
    assert (counts["answers"], counts["changed"], counts["diverged"]) == (answers, 0, len(first))
    assert row["first_round"] == pytest.approx(sum(first) / len(first))
    assert row["lost_decided"] == pytest.approx(0.0)
    assert row["lost_executed"] >= 0.0
    assert "lost as played" in textbench("rescore", folder).out


def test_the_strict_reading_changes_nothing_and_finds_what_a_record_forges(folder, textbench, tmp_path):
    rows = json.loads(textbench("rescore", folder, "--reading", "strict", "--json").out)["readings"]
    assert {(row["counts"]["changed"], row["counts"]["diverged"], row["unknown"]) for row in rows} == {(0, 0, 0)}
    assert {row["read"]["value"] for row in rows if row["agent"] == "bold"} == {0.0}
    records = [one for one in lines_of(folder) if one["scenario"] == "frozen-lake"]
    for record in records:
        record["measured"].pop("checksum")
        if record["agents"] == {"player_0": "bold"}:  # it says that the last answer could be read
            record["steps"][-1]["valid"] = True
            del record["steps"][-1]["unreadable"]
    forged = Path(tmp_path / "forged")
    forged.mkdir()
    (forged / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    write_lines(forged, records)
    rows = json.loads(textbench("rescore", forged, "--reading", "strict", "--json").out)["readings"]
    assert {row["agent"]: row["counts"]["changed"] for row in rows} == {"bold": EPISODES, "babbler": 0, "random": 0}


def test_answers_that_were_refused_count_and_a_second_one_decides(workplace, textbench):
    results = benchmark.evaluate(Bold(), scenarios="frozen-lake", episodes=4, protocol="retry", quiet=True, out="r")
    (row,) = results.leaderboard().document["readings"]
    assert (row["invalid"]["value"], row["read"]["value"], row["optimal"]["value"]) == (0.5, 1.0, 1.0)
    (row,) = json.loads(textbench("rescore", "r", "--json").out)["readings"]
    assert row["counts"]["diverged"] == 0  # it said the same when it was asked again


def test_episodes_beyond_the_limit_are_told(folder, textbench, monkeypatch):
    monkeypatch.setattr(beside, "LIMIT", 4)
    rows = json.loads(textbench("rescore", folder, "--json").out)["readings"]
    assert sum(row["episodes"] for row in rows if row["scenario"] == "snake") < 2 * EPISODES
    assert {row["episodes"] + row["unknown"] for row in rows if row["scenario"] == "snake"} == {EPISODES}


def test_where_all_could_be_read_nothing_changes(workplace, textbench):
    textbench("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", 2, "--out", "r", "--quiet")
    done = textbench("rescore", "r")
    assert (done.code, done.out.count("\n")) == (0, 1)
    assert "every answer could be read" in done.out
    assert "--reading" in textbench("rescore", "r", "--reading", "loose").err


def test_published_answers_read_as_the_page_says(workplace, textbench):
    """SmolLM2's decisions are no better than random ones, so its form isn't all that is wrong (docs/benchmark.md)."""
    entry = Path(benchmark.__file__).parents[1] / "leaderboards" / "smollm2"
    rows = json.loads(textbench("rescore", entry, "--json").out)["readings"]
    (row,) = (row for row in rows if row["scenario"] == "frozen-lake")
    assert row["counts"]["invalid"] == row["counts"]["answers"]
    told = (row["read"]["value"], row["optimal"]["value"], row["chance"])
    assert told == pytest.approx((0.21, 0.74, 0.82), abs=0.005)
