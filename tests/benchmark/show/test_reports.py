"""Reports: comparison, merge, export, plots, the page's document."""

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from agents.common.terminal import printable
from benchmark import evaluate
from benchmark.entries.entry import Terms, submit
from benchmark.entries.validation import manifest_problems
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.record import observations_digest
from benchmark.runs.replay import ending, replay
from benchmark.score.results import read_columns
from benchmark.show.board import p_text, verdict_sentence
from benchmark.show.document_of import results_document
from benchmark.show.table import estimate_figure
from tests.benchmark.helpers import change_manifest, counted, lines_of, text_without_checksums, write_lines
from textgames.scenarios import SCENARIOS


@pytest.fixture(scope="module")
def clear_run(tmp_path_factory):
    """Two agents of which one is better, on two scenarios that have a scale, 20 episodes each, and a third like it."""
    folder = tmp_path_factory.mktemp("clear") / "run"
    agents = {"planner": "planner", "greedy": "greedy", "random": "random"}
    evaluate(agents, scenarios=["frozen-lake", "sliding-puzzle"], episodes=20, out=folder, quiet=True)
    return folder


def test_compare_begins_with_who_is_better_and_what_decides_it(textbench, clear_run):
    names = ("compare", "random", "planner", "--in", clear_run)
    document = json.loads(textbench(*names, "--json").out)
    overall = document["overall"]
    assert overall["low"] <= overall["difference"] <= overall["high"] < 0
    assert overall["p"] <= overall["corrected"] < 0.001
    assert overall["corrected"] == pytest.approx(overall["p"] * 3, rel=1e-6)  # the smallest p of three by Holm
    assert overall["verdict"] == "planner is better"
    assert (overall["decided_by"], overall["against"], overall["unit"]) == (overall["scenarios"], [], "score")
    assert {row["verdict"] for row in document["comparisons"]} == {"planner is better"}
    first, *_ = textbench(*names).out.split("\n" + "A = ")
    shown = f"higher by {-overall['difference']:.3f} [{-overall['high']:.3f}, {-overall['low']:.3f}], p <0.001"
    assert " ".join(first.split()) == (
        f"planner is better than random over 2 scenarios: overall score {shown} after correction for 3 comparisons; "
        "decided by frozen-lake, sliding-puzzle."
    )
    assert textbench(*names, "--markdown").out.startswith("planner is better than random over 2 scenarios")
    board = {row["agent"]: row for row in json.loads(textbench("leaderboard", clear_run, "--json").out)["overall"]}
    scores = [board[agent]["normalized"]["value"] for agent in ("random", "planner")]
    assert overall["difference"] == pytest.approx(scores[0] - scores[1])


@pytest.mark.parametrize(("episodes", "said"), [(10, False), (5, True)])
def test_a_run_that_can_tell_nothing_says_so_before_it(textbench, episodes, said):
    run = ("run", "--agent", "planner", "--agent", "random", "--scenario", "frozen-lake", "--episodes", episodes)
    sentence = "no paired test of one scenario can tell two agents apart with 5 episodes: its smallest p-value is 0.062"
    for done in (textbench(*run, "--dry-run"), textbench(*run, "--out", "run")):
        assert done.code == 0
        told = " ".join((done.out + done.err).split())
        assert (f"{sentence}; it takes --episodes 6 at least" in told) is said
    wide = ("--agent", "planner", "--agent", "greedy", "--agent", "blind", "--agent", "random", "--suite", "planning")
    told = " ".join(textbench("run", *wide, "--episodes", 10, "--dry-run").out.split())
    assert "0.002, 0.13 after correction for 66 comparisons; it takes --episodes 12 at least" in told


def test_the_newest_run_is_shown_when_none_is_named_and_the_agents_that_are(textbench):
    played = ("--agent", "random", "--agent", "greedy", "--scenario", "frozen-lake", "--episodes", 2)
    assert textbench("run", *played, "--quiet").code == 0
    done = textbench("leaderboard", "--json", "--agent", "greedy")
    assert done.code == 0
    assert "showing the newest run, runs/" in done.err
    document = json.loads(done.out)
    assert document["sources"][0]["complete"] is True
    assert {row["agent"] for row in document["scores"]} == {"greedy"}


def test_texts_of_figures():
    assert estimate_figure({"value": -0.0001, "low": None, "high": None}, ".2f")[:3:2] == ("0.00", "")
    assert estimate_figure({"value": 0.5, "low": -0.001, "high": 1.0}, "+.2f")[:3:2] == ("+0.50", "[+0.00, +1.00]")
    assert estimate_figure({"value": 0.5, "low": 0.25, "high": 1.0}, ".0%")[:3:2] == ("50%", "[25, 100]")
    assert estimate_figure(None)[:3:2] == ("", "")
    assert (p_text(0.0004), p_text(0.0123)) == ("<0.001", "0.012")
    assert printable("a\x1b[31mb\n\tc\u202e\U000e0041") == "a\\u001b[31mb\n\tc\\u202e\\udb40\\udc41"


def test_compare_says_how_many_more_starts_would_tell(textbench, clear_run):
    """For the same correction as that of p; and of several pairs each has its own sentence."""
    names = ("compare", "planner", "greedy", "--in", clear_run, "--scenario", "frozen-lake")
    overall = json.loads(textbench(*names, "--json").out)["overall"]
    assert (overall["difference"], overall["verdict"], overall["starts_needed"]) == (0.0, "not told apart", None)
    printed = " ".join(textbench(*names).out.split())
    sentence = "planner and greedy can't be told apart in frozen-lake: mean return of planner higher by 0.000"
    assert printed.startswith(sentence)
    assert "no number of starts would tell." in printed
    evaluate(["planner", "random"], scenarios=["frozen-lake", "sliding-puzzle"], episodes=4, out="few", quiet=True)
    names = ("compare", "planner", "random", "--in", "few")
    alone = json.loads(textbench(*names, "--scenario", "frozen-lake", "--json").out)
    needed = alone["overall"]["starts_needed"]
    assert 4 < needed["low"] <= needed["value"]
    printed = " ".join(textbench(*names, "--scenario", "frozen-lake").out.split())
    assert f"about {needed['value'] - 4} more start" in printed
    # with both scenarios in the comparison, both are told by the same starts at a smaller level
    both = json.loads(textbench(*names, "--json").out)
    together = next(row for row in both["comparisons"] if row["scenario"] == "frozen-lake")
    assert together["episodes_needed"] > alone["comparisons"][0]["episodes_needed"]
    for corrected, apart in ((0.07, True), (0.04, False)):  # a verdict above its p has the intervals as its reason
        told = verdict_sentence({**both["overall"], "verdict": "planner is better", "corrected": corrected})
        assert ("their own intervals have no point in common" in told) == apart
    several = json.loads(textbench("compare", clear_run, "--json").out)
    assert several["overall"] is None
    pairs = [("planner", "greedy"), ("planner", "random"), ("greedy", "random")]
    assert [(row["a"], row["b"], row["comparisons"]) for row in several["overall_pairs"]] == [
        (*one, 9) for one in pairs
    ]


@pytest.mark.slow
def test_machines_results_merge_and_duplicates_are_found_by_seed(textbench):
    command = ("run", "--agent", "random", "--scenario", "frozen-lake", "--quiet")
    for name, about in (("a", (4,)), ("b", (4, "--seed-offset", 2)), ("whole", (6,))):
        assert textbench(*command, "--out", name, "--episodes", *about).code == 0
    for order in (("a", "b"), ("b", "a")):
        assert "6 episodes; 2 were in several runs\n" in textbench("merge", *order, "--out", "both").err
        assert counted("both") == counted("whole")
        terms = Terms(("frozen-lake",), 6)
        manifest = RunFolder.open(submit(Path("both"), Path("entries"), terms=terms)).manifest
        assert (manifest["settings"]["episodes"], manifest["settings"]["seed_offset"]) == (6, 0)
        assert list(manifest_problems(manifest, Plan.from_manifest(manifest), terms)) == []
        assert textbench("resume", "both", "--episodes", 7, "--quiet").code == 0
        shutil.rmtree("both")


def test_a_merge_prefers_scored_episodes_and_tells_conflicts(textbench, small_run):
    for name in ("failed", "different", "other"):
        shutil.copytree(small_run, name)
        lines = lines_of(name)
        if name == "failed":
            lines[0]["error"] = "down"
        else:
            lines[1]["returns"]["player_0"] += 1
        write_lines(name, lines)
    assert "12 were in several runs\n" in textbench("merge", "failed", small_run, "--out", "m1").err
    assert counted("m1") == counted(small_run)
    assert "1 of them played differently" in textbench("merge", small_run, "different", "--out", "m2").err
    assert counted("m2") == counted(small_run)
    change_manifest("other", lambda manifest: manifest["agents"][0].update(settings={"temperature": 1.0}))
    done = textbench("merge", small_run, "other", "--out", "m")
    assert (done.code, "other has another agent named 'random'" in done.err) == (2, True)
    assert not Path("m").exists()


def test_runs_that_looked_otherwise_arent_merged(textbench):
    """The intervals of one would be at the level of the other's looks."""
    command = ("run", "--scenario", "frozen-lake", "--episodes", 4, "--quiet", "--agent")
    for agent, name, about in (
        ("random", "plain", ()),
        ("greedy", "until", ("--until", 0.9)),
        ("planner", "later", ("--until", 0.9, "--seed-offset", 4)),
        ("blind", "more", ("--until", 0.9, "--episodes", 60)),
    ):
        assert textbench(*command, agent, "--out", name, *about).code == 0
    for other, sentence in (
        ("plain", "with until none, until with 0.9"),
        ("later", "with seed_offset 4, until with none"),
    ):
        done = textbench("merge", "until", other, "--out", "m")
        assert (done.code, sentence in done.err) == (2, True)
        assert "show them side by side: textbench leaderboard" in done.err
    assert textbench("merge", "until", "more", "--out", "m").code == 0
    results = read_columns([Path("m")])
    assert results.sources[0][1]["settings"]["episodes"] == 60
    for agent in ("greedy", "blind"):  # after 4, 50 or 60 episodes
        assert results.cells[agent, "frozen-lake"].confidence == pytest.approx(1 - 0.05 / 3)


def steps_of(textbench, run):
    return list(csv.DictReader(io.StringIO(textbench("export", run, "--csv", "-", "--steps").out)))


def test_exports_have_a_row_per_episode_and_per_step(textbench, small_run):
    rows = list(csv.DictReader(io.StringIO(textbench("export", small_run, "--csv", "-").out)))
    records = list(RunFolder.open(small_run).records())
    assert len(rows) == len(records) == 12
    for row, record in zip(rows, records, strict=True):
        assert float(row["return"]) == record.returns["player_0"]
        assert int(row["seed"]) == record.seed
        assert (row["success"] == "true") is record.successes["player_0"]
    steps = steps_of(textbench, small_run)
    assert [row["response"] for row in steps] == [s.turn.response for record in records for s in record.steps]
    replays = [replay(record, SCENARIOS[record.scenario]) for record in records]
    happened = [replayed.happened(step) for replayed in replays for step in replayed.steps]
    assert [row["happened"] for row in steps] == happened
    assert any(text.startswith("slipped") for text in happened)


@pytest.mark.slow
def test_parquet_holds_the_same_and_plots_are_pictures(textbench, small_run):
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("matplotlib")
    assert textbench("export", small_run, "--parquet", "e.parquet").code == 0
    table = parquet.read_table("e.parquet").to_pylist()
    assert [row["seed"] for row in table] == [record.seed for record in RunFolder.open(small_run).records()]
    assert (type(table[0]["return"]), type(table[0]["success"])) == (float, bool)
    for file, begin in ((Path("scores.svg"), b"<?xm"), (Path("scores.png"), b"\x89PNG")):
        assert textbench("export", small_run, "--plot", file, "--measure", "mean_return").code == 0
        assert file.read_bytes()[:4] == begin


def test_the_pages_document_replays_every_episode(small_run):
    document = results_document(read_columns([small_run]))
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    records = {(r.scenario, r.agents["player_0"], r.seed): r for r in RunFolder.open(small_run).records()}
    assert len(document["episodes"]) == document["episodes_total"] == len(records)
    told = set()
    for episode in document["episodes"]:
        record = records[episode["scenario"], episode["agents"]["player_0"], episode["seed"]]
        steps = episode["steps"]
        assert steps["response"] == [step.turn.response for step in record.steps]
        pairs = zip(record.steps, steps["observation"], strict=True)
        read = [replace(step, observation=observation or "") for step, observation in pairs]
        assert observations_digest(read) == record.observations_digest
        assert all("P" in (board or "") for board in steps["board"])
        assert {len(column) for column in steps.values()} == {len(record.steps)}
        replayed = replay(record, SCENARIOS[record.scenario])
        assert [fate or "" for fate in steps["happened"]] == [*map(replayed.happened, replayed.steps)]
        assert episode["ending"] == ending(record, replayed)
        told |= {episode["ending"], *steps["happened"]}
    assert {"reached the step limit", "ended by the rules: reached the goal", "bumped into the edge"} <= told
    # too many: the same seeds of all agents
    fewer = results_document(read_columns([small_run]), max_episodes=4)["episodes"]
    kept = {(one["scenario"], one["agents"]["player_0"], one["seed"]) for one in fewer}
    firsts = (("frozen-lake", 10_000), ("frozen-lake-slippery", 20_000))
    assert kept == {(scenario, agent, seed) for scenario, seed in firsts for agent in ("random", "greedy")}


def test_an_episode_of_other_rules_has_no_more_than_its_record(textbench, small_run):
    file, text = small_run / "episodes.jsonl", text_without_checksums(small_run)
    text = text.replace('"response":', '"reasoning":" The goal is near.\\n","response":', 1)
    file.write_text(text.replace('"observations_digest":"', '"observations_digest":"other'))
    assert {row["happened"] for row in steps_of(textbench, small_run)} == {""}
    views = results_document(read_columns([small_run]))["episodes"]
    assert {text for one in views for text in one["steps"]["reasoning"]} == {"The goal is near.", None}
    for view in views:
        columns = (view["steps"][name] for name in ("happened", "board", "observation"))
        assert {text for column in columns for text in column} == {None}
        assert view["final_board"] is None


@pytest.mark.parametrize("what", ["--csv", "--parquet", "--sft", "--preferences", "--html"])
def test_no_file_of_a_run_is_written_over(textbench, small_run, what):
    """It would be empty before its episodes were read."""
    for file in (small_run / "episodes.jsonl", small_run / "manifest.json"):
        before = file.read_bytes()
        done = textbench("leaderboard" if what == "--html" else "export", small_run, what, file)
        assert (done.code, "is a file of the run in" in done.err) == (2, True)
        assert file.read_bytes() == before


def test_what_has_nothing_to_write_leaves_the_old_file(textbench):
    Path("old.jsonl").write_text("keep")
    run = ("run", "--agent", "planner", "--scenario", "frozen-lake", "--episodes", 2, "--out", "best")
    assert textbench(*run).code == 0
    done = textbench("export", "best", "--preferences", "old.jsonl")
    assert (done.code, "nothing to write to old.jsonl" in done.err) == (2, True)
    assert Path("old.jsonl").read_text() == "keep"
    assert textbench("export", "best", "--csv", "old.jsonl").code == 0
    assert Path("old.jsonl").read_text() == textbench("export", "best", "--csv", "-").out
