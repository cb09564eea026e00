"""The main job from the command line: played, kept, gone on with, and the same every time."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import counted
from textgames import SUITES

PLAYERS = Path(__file__).parents[1] / "players_for_tests.py"
LAKE = ("--scenario", "frozen-lake", "--quiet")


def agent(name):
    return ("--agent", f"{name}={PLAYERS}:{name}")


@pytest.mark.slow
def test_the_same_command_twice_gives_the_same_results(textbench):
    command = ("run", "--agent", "random", "--agent", "greedy", "--scenario", "paper", "--episodes", 4, "--json")
    first = textbench(*command, "--out", "a")
    second = textbench(*command, "--out", "b", "--max-concurrency", 3)
    assert (first.code, second.code) == (0, 0), first.err
    assert counted("a") == counted("b")
    documents = [json.loads(done.out) for done in (first, second)]
    for document in documents:
        for row in document["scores"]:
            assert row.pop("seconds") >= 0
    assert documents[0]["scores"] == documents[1]["scores"]
    assert documents[0]["complete"] is True
    assert {row["scenario"] for row in documents[0]["scores"]} == {
        *("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
    }


def test_every_line_has_what_the_episode_is_made_of(small_run):
    records = list(RunFolder.open(small_run).records())
    assert sorted({record.seed for record in records}) == [10_000, 10_001, 10_002, 20_000, 20_001, 20_002]
    for record in records:
        assert record.agents["player_0"] in ("random", "greedy")
        assert record.terminated is not record.truncated
        assert sum(step.reward for step in record.steps) == record.returns["player_0"]
        assert [step.index for step in record.steps] == list(range(len(record.steps)))
    manifest = RunFolder.open(small_run).manifest
    assert manifest["settings"]["episodes"] == 3
    assert manifest["scenarios"]["frozen-lake"]["horizon"] == 8
    assert manifest["sessions"][0]["outcome"] == "finished"
    assert manifest["packages"]["gymnasium"]


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_cut_and_ends_equal(textbench, small_run):
    whole = counted(small_run)
    lines = (small_run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    for kept, torn in ((0, 0), (5, 0), (7, 30), (11, 1)):
        cut = Path(f"cut{kept}")
        shutil.copytree(small_run, cut)
        (cut / "episodes.jsonl").write_bytes(b"".join(lines[:kept]) + (lines[kept][:torn]))
        done = textbench("resume", cut, "--quiet")
        assert done.code == 0, done.err
        assert counted(cut) == whole
        assert (cut / "episodes.jsonl").read_bytes().startswith(b"".join(lines[:kept]))


def test_the_same_command_into_the_same_folder_goes_on(textbench):
    command = ("run", "--agent", "random", *LAKE, "--episodes", 3, "--out", "here")
    assert textbench(*command).code == 0
    before = Path("here/episodes.jsonl").read_bytes()
    assert textbench(*command, "--max-concurrency", 2, "--timeout", 9).code == 0
    assert Path("here/episodes.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "name", "old", "new"),
    [
        (("--seed-offset", 7), "seed_offset", "0", "7"),
        (("--agent", "greedy"), "agents", "['random']", "['random', 'greedy']"),
        (("--scenario", "snake"), "scenarios", "['frozen-lake']", "['frozen-lake', 'snake']"),
        (("--temperature", 0.2), "temperature", "not given", "0.2"),
        (("--mode", "direct"), "mode", "not given", "'direct'"),
    ],
)
def test_a_changed_setting_doesnt_go_into_the_old_folder(textbench, change, name, old, new):
    command = ("run", "--agent", "random", *LAKE, "--episodes", 3, "--out", "here")
    assert textbench(*command).code == 0
    before = Path("here/episodes.jsonl").read_bytes()
    done = textbench(*command, *change)
    assert done.code == 2
    assert f"here was made with {name} = {old}, now it is {new}" in done.err
    assert "textbench resume here" in done.err
    assert Path("here/episodes.jsonl").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "extend",
    [
        ("run", "--agent", "random", "--agent", "greedy", *LAKE, "--episodes", 5, "--out", "here"),
        ("resume", "here", "--episodes", 5, "--quiet"),
    ],
)
def test_a_run_can_be_extended(textbench, extend):
    command = ("run", "--agent", "random", "--agent", "greedy", *LAKE)
    assert textbench(*command, "--episodes", 3, "--out", "here").code == 0
    before = Path("here/episodes.jsonl").read_bytes()
    done = textbench(*extend)
    assert done.code == 0, done.err
    assert Path("here/episodes.jsonl").read_bytes().startswith(before)
    assert textbench(*command, "--episodes", 5, "--out", "whole").code == 0
    assert counted("here") == counted("whole")
    manifests = [RunFolder.open(Path(name)).manifest for name in ("here", "whole")]
    for name in ("settings", "matchups", "scenarios", "agents"):
        assert manifests[0][name] == manifests[1][name]
    assert len(manifests[0]["sessions"]) == 2


def test_a_manifest_without_what_may_be_left_out_is_taken_over(textbench):
    command = ("run", "--agent", "random", *LAKE, "--episodes", 3)
    assert textbench(*command, "--out", "here").code == 0
    manifest = json.loads(Path("here/manifest.json").read_text())
    del manifest["sessions"], manifest["prices"], manifest["operation"], manifest["settings"]["episodes"]
    Path("here/manifest.json").write_text(json.dumps(manifest))
    done = textbench("resume", "here")
    assert (done.code, "another version of textbench: the setting 'episodes'" in done.err) == (2, True)
    assert textbench(*command, "--out", "here").code == 0
    assert textbench("resume", "here", "--quiet").code == 0


@pytest.mark.parametrize("fewer", [("run", "--agent", "random", *LAKE, "--out", "here"), ("resume", "here")])
def test_a_run_isnt_cut_down(textbench, fewer):
    assert textbench("run", "--agent", "random", *LAKE, "--episodes", 3, "--out", "here").code == 0
    before = Path("here/manifest.json").read_bytes()
    done = textbench(*fewer, "--episodes", 2)
    assert done.code == 2
    assert "here has 3 episodes of every scenario, and 2 would drop some of them" in done.err
    assert done.err.rstrip().endswith("or go on with the old settings: textbench resume here")
    assert Path("here/manifest.json").read_bytes() == before


def test_nothing_else_changes_when_a_run_is_extended(textbench, small_run):
    manifest = json.loads((small_run / "manifest.json").read_text())
    manifest["agents"][0]["settings"]["kind"] = "another"
    (small_run / "manifest.json").write_text(json.dumps(manifest))
    done = textbench("resume", small_run, "--episodes", 9)
    assert done.code == 2
    assert "settings of agent random, kind = 'another', now it is 'random'" in done.err


def test_merged_runs_of_different_seeds_cant_be_extended(textbench):
    command = ("run", "--agent", "random", *LAKE, "--episodes", 2)
    assert textbench(*command, "--out", "a").code == 0
    assert textbench(*command, "--out", "b", "--seed-offset", 50).code == 0
    assert textbench("merge", "a", "b", "--out", "both").code == 0
    done = textbench("resume", "both", "--episodes", 9)
    assert done.code == 2
    assert "both was merged of runs with different seeds or agents, so it can't be extended itself" in done.err


def test_a_damaged_line_is_named_with_its_repair_and_played_again(textbench, small_run):
    whole = counted(small_run)
    lines = (small_run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (small_run / "episodes.jsonl").write_bytes(b"".join([*lines[:4], lines[4][:90] + b"\n", *lines[5:]]))
    for command in (("leaderboard", small_run), ("resume", small_run), ("submit", small_run, "--agent", "greedy")):
        done = textbench(*command)
        assert done.code == 2
        assert "small/episodes.jsonl line 5 isn't an episode: not JSON" in done.err
        assert done.err.endswith("set damaged lines aside and play them again: textbench resume small --repair\n")
    done = textbench("resume", small_run, "--repair")
    assert done.code == 0, done.err
    assert "1 damaged lines are now in small/episodes.damaged.jsonl; their episodes are played again" in done.err
    assert counted(small_run) == whole


def test_a_lost_file_of_episodes_is_named_and_played_again(textbench, small_run):
    whole = counted(small_run)
    (small_run / "episodes.jsonl").unlink()
    for command in (("leaderboard", small_run), ("merge", small_run, "--out", "m"), ("replay", small_run)):
        done = textbench(*command)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "textbench: small has no file episodes.jsonl; play its episodes again: textbench resume small\n"
        )
    assert textbench("resume", small_run, "--quiet").code == 0
    assert counted(small_run) == whole


def test_a_resume_with_other_code_is_refused(textbench, small_run):
    manifest = json.loads((small_run / "manifest.json").read_text())
    manifest["textbench"]["version"] = "0.0.1"
    (small_run / "manifest.json").write_text(json.dumps(manifest))
    done = textbench("resume", small_run)
    assert done.code == 2
    assert "was made with textbench version = '0.0.1'" in done.err
    assert "put back what it was made with" in done.err


def test_a_resume_with_another_model_names_what_differs_alone(textbench, small_run):
    manifest = json.loads((small_run / "manifest.json").read_text())
    manifest["agents"][0]["settings"]["model_weights"] = "0123456789abcdef"
    manifest["agents"][0]["settings"]["nested"] = {"same": 1}
    (small_run / "manifest.json").write_text(json.dumps(manifest))
    done = textbench("resume", small_run)
    assert done.code == 2
    assert (
        "settings of agent random, model_weights = '0123456789abcdef', now it is not given; choose another" in done.err
    )
    assert "nested" not in done.err


def test_a_resume_compares_tokenizers_if_the_run_has_kept_one(textbench):
    pytest.importorskip("torch")
    assert textbench("run", "--agent", "tiny", *LAKE, "--episodes", 1, "--out", "run").code == 0
    file = Path("run/manifest.json")
    for kept, code in (("0123456789abcdef", 2), (None, 0)):
        manifest = json.loads(file.read_text())
        settings = manifest["agents"][0]["settings"]
        assert len(settings.pop("model_tokenizer")) == 16
        settings |= {} if kept is None else {"model_tokenizer": kept}
        file.write_text(json.dumps(manifest))
        done = textbench("resume", "run")
        assert done.code == code, done.err
        assert ("model_tokenizer = '0123456789abcdef', now it is '" in done.err) == (code == 2)


@pytest.mark.parametrize("press", ["SIGINT", "SIGTERM"])
def test_ctrl_c_keeps_what_was_played_and_says_how_to_go_on(textbench, monkeypatch, press):
    monkeypatch.setenv("PRESS_CTRL_C", press)
    command = ("run", *agent("Interrupted"), *LAKE, "--episodes", 12, "--max-concurrency", 1)
    done = textbench(*command, "--out", "a folder")
    assert done.code == 130
    assert "interrupted; 5 of 12 episodes are kept" in done.err
    assert done.err.rstrip().endswith("textbench resume 'a folder'")
    assert len(list(RunFolder.open(Path("a folder")).records())) == 5
    monkeypatch.delenv("PRESS_CTRL_C")
    assert textbench("resume", "a folder", "--quiet").code == 0
    assert textbench(*command, "--out", "whole").code == 0
    assert counted("a folder") == counted("whole")


@pytest.mark.slow
def test_a_provider_error_is_neither_won_nor_lost(textbench, monkeypatch):
    monkeypatch.setenv("PROVIDER_DOWN", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    done = textbench("run", *agent("Broken"), "--agent", "random", *LAKE, "--episodes", 6, "--out", "r", "--json")
    assert done.code == 1
    document = json.loads(done.out)
    rows = {row["agent"]: row for row in document["scores"]}
    assert (rows["Broken"]["episodes"], rows["Broken"]["unscored"], rows["Broken"]["rank"]) == (4, 2, None)
    assert rows["Broken"]["errors"] == {"status 500 after 3 attempts (key [redacted])": 2}
    assert rows["random"]["rank"] == 1
    assert document["complete"] is False
    table = textbench("leaderboard", "r", "--stats").out
    assert "Broken: not ranked, 2 unscored\nBroken: unscored: status 500 after 3 attempts (key [redacted]) 2" in table
    for file in Path("r").iterdir():
        assert b"planted" not in file.read_bytes()

    monkeypatch.delenv("PROVIDER_DOWN")
    again = textbench("resume", "r", "--json", "--quiet")
    assert again.code == 0
    row = next(row for row in json.loads(again.out)["scores"] if row["agent"] == "Broken")
    assert (row["episodes"], row["unscored"], row["errors"]) == (6, 0, {})
    fresh = textbench("run", *agent("Broken"), "--agent", "random", *LAKE, "--episodes", 6, "--out", "fresh")
    assert fresh.code == 0
    assert counted("r") == counted("fresh")


@pytest.mark.slow
def test_an_agent_whose_provider_is_dead_stops_alone(textbench):
    agents = (*agent("Dead"), "--agent", "random", "--agent", "greedy")
    options = ("--scenario", "snake-duel", "--episodes", 30, "--max-concurrency", 4, "--out", "r")
    done = textbench("run", *agents, *LAKE, *options)
    assert done.code == 1
    assert done.err.count("the first 20 episodes of Dead all failed: connection refused") == 1
    assert done.err.rstrip().endswith("textbench resume r")
    played = Counter(tuple(r.agents.values()) for r in RunFolder.open(Path("r")).records() if r.error is None)
    assert {team: count for team, count in played.items() if count} == {
        ("random",): 30,
        ("greedy",): 30,
        ("random", "greedy"): 30,
        ("greedy", "random"): 30,
    }


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "played"), [("random", {"left", "down", "right", "up"}), ("default", {"left"})])
def test_unreadable_answers_are_counted_by_reason_and_replaced_as_the_protocol_says(textbench, protocol, played):
    options = ("--protocol", protocol) if protocol != "random" else ()  # which is what is played unless told
    done = textbench("run", *agent("Babbler"), *LAKE, *options, "--episodes", 30, "--json", "--out", "r")
    (row,) = json.loads(done.out)["scores"]
    assert done.code == 0
    assert set(row["invalid_reasons"]) == {"empty", "no_tag", "unclosed_tag", "unknown_name", "several_tags"}
    steps = [step for record in RunFolder.open(Path("r")).records() for step in record.steps]
    invalid = [step for step in steps if not step.valid]
    assert sum(row["invalid_reasons"].values()) == len(invalid)
    assert row["invalid_rate"]["value"] == pytest.approx(len(invalid) / len(steps))
    assert {step.action for step in invalid} == played
    plain = textbench("replay", "r", "--plain", "--episode", 1).out
    assert "\x1b[31mred" not in "".join(textbench("replay", "r", "--plain", "--episode", n).out for n in range(1, 31))
    assert "frozen-lake, seed" in plain


@pytest.mark.slow
def test_money_is_counted_and_limited(textbench):
    Path("prices.toml").write_text("[prices.Always]\ninput = 1.0\noutput = 10.0\n")
    command = ("run", *agent("Always"), *LAKE, "--prices", "prices.toml", "--max-concurrency", 1, "--episodes", 20)
    done = textbench(*command, "--out", "free", "--json")
    (row,) = json.loads(done.out)["scores"]
    steps = sum(len(record.steps) for record in RunFolder.open(Path("free")).records())
    assert row["cost"] == pytest.approx(steps * 0.002)
    assert row["tokens"]["value"] * 20 == pytest.approx(steps * 1100)

    limited = textbench(*command, "--out", "limited", "--max-cost", 0.05)
    assert limited.code == 1
    assert "of --max-cost 0.05; resume with a larger --max-cost" in limited.err
    assert limited.err.endswith("Go on with:\n  textbench resume limited --max-cost 0.1\n")
    spent = sum(len(record.steps) for record in RunFolder.open(Path("limited")).records()) * 0.002
    assert 0.02 < spent <= 0.05
    Path("prices.toml").unlink()  # a resume has the prices from the manifest
    assert textbench("resume", "limited", "--max-cost", 0.05, "--quiet").code == 1
    assert textbench("resume", "limited", "--max-cost", 9, "--quiet").code == 0
    assert counted("limited") == counted("free")


def test_no_episode_is_begun_that_the_money_does_not_reach_for(textbench):
    Path("prices.toml").write_text("[prices.Always]\ninput = 1.0\noutput = 10.0\n")
    command = ("run", *agent("Always"), "--scenario", "rock-paper-scissors-tft", "--prices", "prices.toml")
    textbench(*command, "--max-concurrency", 1, "--episodes", 1, "--out", "one")
    each = sum(len(record.steps) for record in RunFolder.open(Path("one")).records()) * 0.002  # all have as many
    limited = ("--max-concurrency", 1, "--episodes", 9, "--max-cost", 3.5 * each, "--out", "limited")
    assert f"{3 * each:.4f} USD spent" in textbench(*command, *limited).err


@pytest.mark.parametrize("dollars", [0.1, pytest.param(0.4, marks=pytest.mark.slow)])
def test_short_episodes_that_finish_first_dont_make_others_begin_that_cant_be_finished(textbench, dollars):
    Path("prices.toml").write_text("[prices.Always]\ninput = 1.0\noutput = 10.0\n")
    command = ("run", *agent("Always"), "--scenario", "snake", "--episodes", 60, "--prices", "prices.toml")
    assert "the money is used up" in textbench(*command, "--max-cost", dollars, "--out", "r").err
    (row,) = json.loads(textbench("leaderboard", "r", "--json").out)["scores"]
    assert 0.85 * dollars < row["cost"] <= dollars


def test_without_money_nothing_is_asked_for(textbench):
    Path("prices.toml").write_text("[prices.Always]\ninput = 1.0\noutput = 10.0\n")
    command = ("run", *agent("Always"), *LAKE, "--prices", "prices.toml", "--out", "r", "--max-cost", 0)
    assert "0.0000 USD spent of --max-cost 0;" in textbench(*command).err


@pytest.mark.slow
def test_time_is_limited(textbench):
    done = textbench("run", "--agent", "random", *LAKE, "--episodes", 500, "--run-timeout", 0.05, "--out", "r")
    assert done.code == 1
    assert "the run's time is up (--run-timeout 0.05)" in done.err
    assert textbench("resume", "r", "--run-timeout", 60, "--quiet").code == 0


@pytest.mark.slow
def test_the_duel_is_a_round_robin_in_both_orders(textbench):
    done = textbench(
        *("run", "--agent", "random", "--agent", "greedy", "--agent", "r2=random", "--scenario", "snake-duel"),
        *("--episodes", 2, "--json", "--out", "r", "--quiet"),
    )
    assert done.code == 0, done.err
    seats = {(tuple(record.agents.values()), record.seed) for record in RunFolder.open(Path("r")).records()}
    assert len(seats) == 6 * 2
    assert {(("random", "greedy"), 70_000), (("greedy", "random"), 70_000)} <= seats
    document = json.loads(done.out)
    assert {row["agent"]: row["episodes"] for row in document["scores"]} == {"random": 8, "greedy": 8, "r2": 8}
    assert [rating["games"] for rating in document["ratings"]] == [8, 8, 8]
    assert document["ratings"][0]["agent"] == "greedy"


def test_one_agent_in_the_duel_plays_itself(textbench):
    done = textbench("run", "--agent", "greedy", "--scenario", "snake-duel", "--episodes", 2, "--json", "--quiet")
    assert done.code == 0
    (row,) = json.loads(done.out)["scores"]
    assert (row["episodes"], row["planned"]) == (4, 4)


@pytest.mark.slow
def test_a_dry_run_plays_nothing_and_says_what_would_be(textbench, workplace):
    names = (
        "frozen-lake",
        "frozen-lake-slippery",
        "frozen-lake-big",
        "snake",
        "snake-long",
        "snake-poison",
        "snake-duel",
    )
    chosen = [word for name in names for word in ("--scenario", name)]
    done = textbench("run", "--agent", "openai:gpt", *chosen, "--episodes", 10, "--dry-run", "--json")
    assert done.code == 0
    document = json.loads(done.out)
    assert document["episodes"] == 70
    assert document["requests_at_most"] == 10 * (8 + 15 + 20 + 8 + 20 + 20 + 30 * 2)
    done = textbench("run", "--agent", "openai:gpt", "--scenario", "all", "--episodes", 10, "--dry-run", "--json")
    assert json.loads(done.out)["episodes"] == 10 * len(SUITES["all"])
    assert list(workplace.iterdir()) == []
    assert "nothing was played" in textbench("run", "--agent", "random", "--dry-run").out


def test_tables_go_to_stdout_and_progress_to_stderr(textbench):
    done = textbench("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", 3, "--out", "r")
    assert "frozen-lake" in done.out
    assert "0 is the best play that doesn't read, 1 is optimal play" in " ".join(done.out.split())
    assert "3/3 episodes" in done.err
    assert "textbench replay r" in done.err
    assert "\x1b" not in done.out
    quiet = textbench("run", "--agent", "random", *LAKE, "--episodes", 3)
    assert quiet.err == ""


@pytest.mark.slow
def test_a_full_disk_says_so_and_what_was_finished_can_be_gone_on_with(textbench):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        done = textbench("run", "--agent", "random", *LAKE, "--episodes", 100, "--out", "r")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.code == 1
    assert "can't write to r/episodes.jsonl: File too large" in done.err
    assert "textbench resume r" in done.err
    assert 5 < len(list(RunFolder.open(Path("r")).records())) < 100
    assert textbench("resume", "r", "--quiet").code == 0
    assert len(list(RunFolder.open(Path("r")).records())) == 100


def test_a_player_with_a_bug_gets_its_traceback_and_the_run_can_go_on(textbench):
    done = textbench("run", *agent("Buggy"), *LAKE, "--episodes", 8, "--max-concurrency", 1, "--out", "r")
    assert done.code == 1
    assert "in act" in done.err
    assert "a player failed: ZeroDivisionError: in the player's own code; 3 of 8 episodes are kept" in done.err
    assert done.err.rstrip().endswith("textbench resume r")


def test_an_episode_that_cant_be_read_again_is_unscored_and_the_run_stays_readable(textbench, workplace):
    (workplace / "players_for_tests.py").write_text(PLAYERS.read_text())
    arguments = ("--agent", "players_for_tests.py:Absurd", "--scenario", "frozen-lake", "--episodes", 6)
    done = textbench("run", *arguments, "--out", "r", "--json", "--quiet")
    assert done.code == 1
    (row,) = json.loads(done.out)["scores"]
    assert (row["episodes"], row["unscored"]) == (4, 2)
    assert "can't be kept: steps.0.tokens.0 must be less than or equal to 1000000000" in done.out
    assert textbench("leaderboard", "r", "--json").code == 0
