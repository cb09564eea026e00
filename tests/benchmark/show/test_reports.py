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
from benchmark.show.draw import to_markdown
from benchmark.show.table import estimate_figure, text_table
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


def test_compare_says_how_many_more_starts_would_tell(textbench, clear_run):
    """For the same correction as that of p; and of several pairs each has its own sentence."""
    names = ("compare", "planner", "greedy", "--in", clear_run, "--scenario", "frozen-lake")
    overall = json.loads(textbench(*names, "--json").out)["overall"]
    assert (overall["difference"], overall["verdict"], overall["starts_needed"]) == (0.0, "not told apart", None)
    sentence = "planner and greedy can't be told apart in frozen-lake: mean return of planner higher by 0.000"
    printed = " ".join(textbench(*names).out.split())
    assert printed.startswith(sentence)
    assert "no number of starts would tell." in printed
    few = 4
    evaluate(["planner", "random"], scenarios=["frozen-lake", "sliding-puzzle"], episodes=few, out="few", quiet=True)
    done = textbench("compare", "planner", "random", "--in", "few", "--scenario", "frozen-lake", "--json")
    overall = json.loads(done.out)["overall"]
    needed = overall["starts_needed"]
    assert few < needed["low"] <= needed["value"]
    more = " ".join(textbench("compare", "planner", "random", "--in", "few", "--scenario", "frozen-lake").out.split())
    assert f"about {needed['value'] - few} more start" in more
    # with both scenarios in the comparison, both are told by the same starts at a smaller level
    both = json.loads(textbench("compare", "planner", "random", "--in", "few", "--json").out)
    alone = json.loads(done.out)["comparisons"][0]
    together = next(row for row in both["comparisons"] if row["scenario"] == "frozen-lake")
    assert together["episodes_needed"] > alone["episodes_needed"]
    for corrected, apart in ((0.07, True), (0.04, False)):  # a verdict above its p has the intervals as its reason
        told = verdict_sentence({**overall, "verdict": "planner is better", "corrected": corrected})
        assert ("their own intervals have no point in common" in told) == apart
    several = json.loads(textbench("compare", clear_run, "--json").out)
    assert several["overall"] is None
    assert [(row["a"], row["b"]) for row in several["overall_pairs"]] == [
        ("planner", "greedy"),
        ("planner", "random"),
        ("greedy", "random"),
    ]
    assert {row["comparisons"] for row in several["overall_pairs"]} == {9}


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


def test_compare_takes_run_folders(textbench, small_run):
    shutil.copytree(small_run, "other")
    document = json.loads(textbench("compare", small_run, "other", "--json").out)
    pairs = {(row["a"], row["b"]) for row in document["comparisons"]}
    assert ("random", "other/random") in pairs
    same = next(row for row in document["comparisons"] if (row["a"], row["b"]) == ("random", "other/random"))
    assert (same["difference"]["value"], same["p_value"], same["episodes_needed"]) == (0.0, 1.0, None)


def test_the_newest_run_is_shown_when_none_is_named_and_the_agents_that_are(textbench):
    played = ("--agent", "random", "--agent", "greedy", "--scenario", "frozen-lake", "--episodes", 2)
    assert textbench("run", *played, "--quiet").code == 0
    done = textbench("leaderboard", "--json", "--agent", "greedy")
    assert done.code == 0
    assert "showing the newest run, runs/" in done.err
    document = json.loads(done.out)
    assert document["sources"][0]["complete"] is True
    assert {row["agent"] for row in document["scores"]} == {"greedy"}


@pytest.mark.slow
def test_machines_results_merge_and_duplicates_are_found_by_seed(textbench):
    command = ("run", "--agent", "random", "--scenario", "frozen-lake", "--quiet")
    assert textbench(*command, "--episodes", 4, "--out", "a").code == 0
    assert textbench(*command, "--episodes", 4, "--seed-offset", 2, "--out", "b").code == 0
    assert textbench(*command, "--episodes", 6, "--out", "whole").code == 0
    done = textbench("merge", "a", "b", "--out", "both")
    assert done.code == 0
    assert "6 episodes; 2 were in several runs\n" in done.err
    assert counted("both") == counted("whole")
    before = json.loads(textbench("leaderboard", "whole", "--json").out)["scores"]
    after = json.loads(textbench("leaderboard", "both", "--json").out)["scores"]
    untimed = {"seconds": 0, "cpu_seconds": 0}
    assert [row | untimed for row in before] == [row | untimed for row in after]
    assert textbench("resume", "both", "--quiet").code == 0


def test_a_merge_prefers_scored_episodes_and_tells_conflicts(textbench, small_run):
    for name in ("failed", "different"):
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


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_machines_that_share_the_seeds_have_an_entry_together(textbench, order):
    command = ("run", "--agent", "random", "--scenario", "frozen-lake", "--quiet", "--episodes", 2)
    assert textbench(*command, "--out", "first").code == 0
    assert textbench(*command, "--out", "second", "--seed-offset", 2).code == 0
    assert textbench("merge", *order, "--out", "both").code == 0
    terms = Terms(("frozen-lake",), 4)
    manifest = RunFolder.open(submit(Path("both"), Path("entries"), terms=terms)).manifest
    assert (manifest["settings"]["episodes"], manifest["settings"]["seed_offset"]) == (4, 0)
    assert list(manifest_problems(manifest, Plan.from_manifest(manifest), terms)) == []
    assert textbench("resume", "both", "--episodes", 5, "--quiet").code == 0


def test_runs_that_looked_otherwise_arent_merged(textbench):
    """The intervals of one would be at the level of the other's looks."""
    command = ("run", "--scenario", "frozen-lake", "--episodes", 4, "--quiet", "--agent")
    assert textbench(*command, "random", "--out", "plain").code == 0
    assert textbench(*command, "greedy", "--until", 0.9, "--out", "until").code == 0
    assert textbench(*command, "planner", "--until", 0.9, "--seed-offset", 4, "--out", "later").code == 0
    for other, sentence in (
        ("plain", "with until none, until with 0.9"),
        ("later", "with seed_offset 4, until with none"),
    ):
        done = textbench("merge", "until", other, "--out", "m")
        assert done.code == 2
        assert sentence in done.err
        assert "show them side by side: textbench leaderboard" in done.err
    assert textbench(*command, "blind", "--until", 0.9, "--episodes", 60, "--out", "more").code == 0
    assert textbench("merge", "until", "more", "--out", "m").code == 0
    results = read_columns([Path("m")])
    assert results.sources[0][1]["settings"]["episodes"] == 60
    for agent in ("greedy", "blind"):  # after 4, 50 or 60 episodes
        assert results.cells[agent, "frozen-lake"].confidence == pytest.approx(1 - 0.05 / 3)


def test_what_doesnt_belong_together_isnt_merged(textbench, small_run):
    shutil.copytree(small_run, "other")
    change_manifest("other", lambda manifest: manifest["agents"][0].update(settings={"temperature": 1.0}))
    done = textbench("merge", small_run, "other", "--out", "m")
    assert done.code == 2
    assert "other has another agent named 'random'" in done.err
    assert not Path("m").exists()


def test_csv_has_a_row_per_episode_and_per_step(textbench, small_run):
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
def test_parquet_holds_the_same(textbench, small_run):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert textbench("export", small_run, "--parquet", "e.parquet").code == 0
    table = parquet.read_table("e.parquet").to_pylist()
    assert [row["seed"] for row in table] == [record.seed for record in RunFolder.open(small_run).records()]
    assert isinstance(table[0]["return"], float)
    assert isinstance(table[0]["success"], bool)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plots_are_pictures(textbench, small_run, ending):
    pytest.importorskip("matplotlib")
    file = Path(f"scores.{ending}")
    assert textbench("export", small_run, "--plot", file, "--measure", "mean_return").code == 0
    assert file.read_bytes()[:4] == {"svg": b"<?xm", "png": b"\x89PNG"}[ending]


def test_the_pages_document_replays_every_episode(small_run):
    document = results_document(read_columns([small_run]))
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert document == results_document(read_columns([small_run]))
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
    assert [row["agent"] for row in document["overall"]] == [agent["name"] for agent in document["agents"]]
    assert len(document["comparisons"]) == 2
    assert document["scenarios"][0]["legend"]


def test_the_page_keeps_the_same_seeds_of_all_agents_when_there_are_too_many(small_run):
    document = results_document(read_columns([small_run]), max_episodes=4)
    shown = {(e["scenario"], e["agents"]["player_0"], e["seed"]) for e in document["episodes"]}
    assert shown == {
        (scenario, agent, seed)
        for scenario, seed in (("frozen-lake", 10_000), ("frozen-lake-slippery", 20_000))
        for agent in ("random", "greedy")
    }
    assert document["episodes_total"] == 12


def test_markdown_cells_stay_cells():
    text = to_markdown([text_table("a | b", ("<name", "value"), (("<b>|x`", "1"),), ("note",))])
    assert "### a \\| b" in text
    assert "| \\<b>\\|x\\` | 1 |" in text


def test_texts_of_figures():
    assert estimate_figure({"value": -0.0001, "low": None, "high": None}, ".2f")[:3:2] == ("0.00", "")
    assert estimate_figure({"value": 0.5, "low": -0.001, "high": 1.0}, "+.2f")[:3:2] == ("+0.50", "[+0.00, +1.00]")
    assert estimate_figure({"value": 0.5, "low": 0.25, "high": 1.0}, ".0%")[:3:2] == ("50%", "[25, 100]")
    assert estimate_figure(None)[:3:2] == ("", "")
    assert (p_text(0.0004), p_text(0.0123)) == ("<0.001", "0.012")
    assert printable("a\x1b[31mb\n\tc\u202e\U000e0041") == "a\\u001b[31mb\n\tc\\u202e\\udb40\\udc41"


def steps_of(textbench, run):
    return list(csv.DictReader(io.StringIO(textbench("export", run, "--csv", "-", "--steps").out)))


@pytest.mark.parametrize("what", ["--csv", "--parquet", "--sft", "--preferences", "--html"])
@pytest.mark.parametrize("file", ["episodes.jsonl", "manifest.json"])
def test_no_file_of_a_run_is_written_over(textbench, small_run, what, file):
    """It would be empty before its episodes were read."""
    before = (small_run / file).read_bytes()
    done = textbench("leaderboard" if what == "--html" else "export", small_run, what, small_run / file)
    assert (done.code, "is a file of the run in" in done.err) == (2, True)
    assert (small_run / file).read_bytes() == before


def test_what_has_nothing_to_write_leaves_the_old_file(textbench, small_run, workplace):
    (workplace / "old.jsonl").write_text("keep")
    assert (
        textbench("run", "--agent", "planner", "--scenario", "frozen-lake", "--episodes", 2, "--out", "best").code == 0
    )
    done = textbench("export", "best", "--preferences", "old.jsonl")
    assert (done.code, "nothing to write to old.jsonl" in done.err) == (2, True)
    assert (workplace / "old.jsonl").read_text() == "keep"
    assert textbench("export", small_run, "--csv", "old.jsonl").code == 0
    assert (workplace / "old.jsonl").read_text() == textbench("export", small_run, "--csv", "-").out


def test_an_episode_of_other_rules_has_no_more_than_its_record(textbench, small_run):
    file = small_run / "episodes.jsonl"
    file.write_text(
        text_without_checksums(small_run).replace('"observations_digest":"', '"observations_digest":"other')
    )
    assert {row["happened"] for row in steps_of(textbench, small_run)} == {""}
    for view in results_document(read_columns([small_run]))["episodes"]:
        columns = (view["steps"][name] for name in ("happened", "board", "observation"))
        assert {text for column in columns for text in column} == {None}
        assert view["final_board"] is None


def test_reasoning_that_came_apart_from_the_response_is_shown(small_run):
    file = small_run / "episodes.jsonl"
    first, *others = text_without_checksums(small_run).splitlines(keepends=True)
    file.write_text(
        first.replace('"response":', '"reasoning":" The goal is near.\\n","response":', 1) + "".join(others)
    )
    document = results_document(read_columns([small_run]))
    shown = [text for view in document["episodes"] for text in view["steps"]["reasoning"] if text is not None]
    assert shown == ["The goal is near."]
