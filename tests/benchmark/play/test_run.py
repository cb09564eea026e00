"""The main job from the command line: played, kept, gone on with, and the same every time."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import PLAYERS, change_manifest, counted, everything_written, records_in, refused, steps_in

LAKE = ("--scenario", "frozen-lake", "--quiet")
RANDOM = ("run", "--agent", "random", *LAKE)
HERE = ("--episodes", 3, "--out", "here")


def agent(name):
    return ("--agent", f"{name}={PLAYERS}:{name}")


def test_a_run_goes_on_where_it_was_cut_and_ends_equal(textbench, small_run):
    whole = counted(small_run)
    lines = (small_run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    for kept, torn in ((0, 0), (7, 30)):
        (small_run / "episodes.jsonl").write_bytes(b"".join(lines[:kept]) + (lines[kept][:torn]))
        done = textbench("resume", small_run, "--quiet")
        assert done.code == 0, done.err
        assert counted(small_run) == whole
        assert (small_run / "episodes.jsonl").read_bytes().startswith(b"".join(lines[:kept]))


CHANGES = {
    "seed_offset = 0, now it is 7": ("--seed-offset", 7),
    "agents = ['random'], now it is ['random', 'greedy']": ("--agent", "greedy"),
    "protocol = 'random', now it is 'forfeit'": ("--protocol", "forfeit"),
    "temperature = not given, now it is 0.2": ("--temperature", 0.2),
}


def test_the_same_command_goes_on_in_its_folder_and_one_with_another_setting_or_less_to_play_does_not(textbench):
    assert textbench(*RANDOM, *HERE).code == 0
    before, manifest = Path("here/episodes.jsonl").read_bytes(), Path("here/manifest.json").read_bytes()
    for change, words in CHANGES.items():
        refused(textbench(*RANDOM, *HERE, *words), f"here was made with {change}", "textbench resume here")
    for fewer in ((*RANDOM, "--out", "here"), ("resume", "here")):
        done = textbench(*fewer, "--episodes", 2)
        refused(done, "here has 3 episodes of every scenario, and 2 would drop some of them")
        assert done.err.rstrip().endswith("or go on with the old settings: textbench resume here")
    assert Path("here/manifest.json").read_bytes() == manifest
    assert textbench(*RANDOM, *HERE, "--max-concurrency", 2, "--timeout", 9).code == 0
    assert Path("here/episodes.jsonl").read_bytes() == before


def test_a_run_can_be_extended(textbench):
    command = ("run", "--agent", "random", "--agent", "greedy", *LAKE)
    assert textbench(*command, "--episodes", 5, "--out", "whole").code == 0
    for out, extend in {"a": (*command, "--out", "a"), "b": ("resume", "b", "--quiet")}.items():
        assert textbench(*command, "--episodes", 3, "--out", out).code == 0
        before = Path(out, "episodes.jsonl").read_bytes()
        assert textbench(*extend, "--episodes", 5).code == 0
        assert Path(out, "episodes.jsonl").read_bytes().startswith(before)
        assert counted(out) == counted("whole")
        manifests = [RunFolder.open(Path(name)).manifest for name in (out, "whole")]
        for name in ("settings", "matchups", "scenarios", "agents"):
            assert manifests[0][name] == manifests[1][name]
        assert len(manifests[0]["sessions"]) == 2


def test_a_manifest_without_what_may_be_left_out_is_taken_over(textbench):
    assert textbench(*RANDOM, *HERE).code == 0

    def leave_out(manifest):
        del manifest["sessions"], manifest["prices"], manifest["operation"], manifest["settings"]["episodes"]

    change_manifest("here", leave_out)
    done = textbench("resume", "here")
    assert (done.code, "another version of textbench: the setting 'episodes'" in done.err) == (2, True)
    assert textbench(*RANDOM, *HERE).code == 0
    assert textbench("resume", "here", "--quiet").code == 0


def settings_of_the_first(manifest):
    return manifest["agents"][0]["settings"]


def test_a_resume_with_another_player_or_other_code_names_what_differs_alone(textbench, small_run):
    weights = {"model_weights": "0123456789abcdef", "nested": {"same": 1}}
    for change, said in (
        (weights, "model_weights = '0123456789abcdef', now it is not"),
        ({"kind": "another"}, "settings of agent random, kind = 'another', now it is 'random'; choose another"),
    ):
        change_manifest(small_run, lambda m, change=change: settings_of_the_first(m).update(change))
        done = textbench("resume", small_run, "--episodes", 9)
        assert (done.code, said in done.err, "nested" in done.err) == (2, True, False), done.err
    change_manifest(small_run, lambda m: m["textbench"].update(version="0.0.1"))
    err = textbench("resume", small_run).err
    assert "was made with textbench version = '0.0.1'" in err
    assert "put back what it was made with" in err


def test_merged_runs_of_different_seeds_cant_be_extended(textbench):
    for out, offset in (("a", 0), ("b", 50)):
        assert textbench(*RANDOM, "--episodes", 2, "--out", out, "--seed-offset", offset).code == 0
    assert textbench("merge", "a", "b", "--out", "both").code == 0
    done = textbench("resume", "both", "--episodes", 9)
    refused(done, "both was merged of runs with different seeds or agents, so it can't be extended itself")


def test_a_damaged_line_is_named_with_its_repair_and_played_again(textbench, small_run):
    whole = counted(small_run)
    lines = (small_run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (small_run / "episodes.jsonl").write_bytes(b"".join([*lines[:4], lines[4][:90] + b"\n", *lines[5:]]))
    for command in (("leaderboard", small_run), ("resume", small_run), ("submit", small_run, "--agent", "greedy")):
        done = textbench(*command)
        refused(done, "small/episodes.jsonl line 5 isn't an episode: not JSON")
        assert done.err.endswith("set damaged lines aside and play them again: textbench resume small --repair\n")
    done = textbench("resume", small_run, "--repair")
    assert done.code == 0, done.err
    assert "1 damaged lines are now in small/episodes.damaged.jsonl; their episodes are played again" in done.err
    assert counted(small_run) == whole


def test_a_resume_compares_tokenizers_if_the_run_has_kept_one(textbench):
    pytest.importorskip("torch")
    assert textbench("run", "--agent", "tiny", *LAKE, "--episodes", 1, "--out", "run").code == 0
    change_manifest("run", lambda m: settings_of_the_first(m).update(model_tokenizer="0123456789abcdef"))
    done = textbench("resume", "run")
    assert (done.code, "model_tokenizer = '0123456789abcdef', now it is '" in done.err) == (2, True)
    change_manifest("run", lambda m: settings_of_the_first(m).pop("model_tokenizer"))
    assert textbench("resume", "run").code == 0


@pytest.mark.parametrize("press", ["SIGINT", "SIGTERM"])
def test_ctrl_c_keeps_what_was_played_and_says_how_to_go_on(textbench, monkeypatch, press):
    monkeypatch.setenv("PRESS_CTRL_C", press)
    command = ("run", *agent("Interrupted"), *LAKE, "--episodes", 12, "--max-concurrency", 1)
    done = textbench(*command, "--out", "a folder")
    assert done.code == 130
    assert "interrupted; 5 of 12 episodes are kept" in done.err
    assert done.err.rstrip().endswith("textbench resume 'a folder'")
    assert len(records_in("a folder")) == 5
    monkeypatch.delenv("PRESS_CTRL_C")
    assert textbench("resume", "a folder", "--quiet").code == 0
    assert textbench(*command, "--out", "whole").code == 0
    assert counted("a folder") == counted("whole")


@pytest.mark.slow
def test_a_provider_error_is_neither_won_nor_lost(textbench, monkeypatch):
    monkeypatch.setenv("PROVIDER_DOWN", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    command = ("run", *agent("Broken"), "--agent", "random", *LAKE, "--episodes", 6)
    done = textbench(*command, "--out", "r", "--json")
    assert (done.code, json.loads(done.out)["complete"]) == (1, False)
    rows = {row["agent"]: row for row in json.loads(done.out)["scores"]}
    assert (rows["Broken"]["episodes"], rows["Broken"]["unscored"], rows["Broken"]["rank"]) == (4, 2, None)
    assert rows["Broken"]["errors"] == {"status 500 after 3 attempts (key [redacted])": 2}
    assert rows["random"]["rank"] == 1
    table = textbench("leaderboard", "r", "--stats").out
    assert "Broken: not ranked, 2 unscored\nBroken: unscored: status 500 after 3 attempts (key [redacted]) 2" in table
    assert "planted" not in everything_written("r")
    monkeypatch.delenv("PROVIDER_DOWN")
    assert textbench("resume", "r", "--quiet").code == 0
    assert textbench(*command, "--out", "fresh").code == 0
    assert counted("r") == counted("fresh")


@pytest.mark.slow
def test_an_agent_whose_provider_is_dead_stops_alone(textbench):
    agents = (*agent("Dead"), "--agent", "random", "--agent", "greedy")
    options = ("--scenario", "snake-duel", "--episodes", 30, "--max-concurrency", 4, "--out", "r")
    done = textbench("run", *agents, *LAKE, *options)
    assert done.code == 1
    assert done.err.count("the first 20 episodes of Dead all failed: connection refused") == 1
    assert done.err.rstrip().endswith("textbench resume r")
    played = Counter(tuple(r.agents.values()) for r in records_in("r") if r.error is None)
    teams = [("random",), ("greedy",), ("random", "greedy"), ("greedy", "random")]
    assert {team: count for team, count in played.items() if count} == dict.fromkeys(teams, 30)


def test_an_episode_that_cant_be_read_again_is_unscored_and_the_run_stays_readable(textbench):
    done = textbench("run", *agent("Absurd"), *LAKE, "--episodes", 6, "--out", "r", "--json")
    assert (done.code, "can't be kept: steps.0.tokens.0 must be less than or equal to 1000000000" in done.out) == (1, 1)
    for read in (done, textbench("leaderboard", "r", "--json")):
        (row,) = json.loads(read.out)["scores"]
        assert (row["episodes"], row["unscored"]) == (4, 2)


ALWAYS = ("run", *agent("Always"), "--prices", "prices.toml")


@pytest.fixture
def prices(workplace):
    """Every answer costs 0.002 US dollars."""
    Path("prices.toml").write_text("[prices.Always]\ninput = 1.0\noutput = 10.0\n")


def cost_in(folder):
    return len(steps_in(folder)) * 0.002


@pytest.mark.slow
def test_money_is_counted_and_limited(textbench, prices):
    command = (*ALWAYS, *LAKE, "--max-concurrency", 1, "--episodes", 20)
    done = textbench(*command, "--out", "free", "--json")
    (row,) = json.loads(done.out)["scores"]
    assert row["cost"] == pytest.approx(cost_in("free"))
    assert row["tokens"]["value"] * 20 == pytest.approx(cost_in("free") / 0.002 * 1100)

    limited = textbench(*command, "--out", "limited", "--max-cost", 0.05)
    assert limited.code == 1
    assert "of --max-cost 0.05; resume with a larger --max-cost" in limited.err
    assert limited.err.endswith("Go on with:\n  textbench resume limited --max-cost 0.1\n")
    assert 0.02 < cost_in("limited") <= 0.05
    Path("prices.toml").unlink()  # a resume has the prices from the manifest
    assert textbench("resume", "limited", "--max-cost", 0.05, "--quiet").code == 1
    assert textbench("resume", "limited", "--max-cost", 9, "--quiet").code == 0
    assert counted("limited") == counted("free")


def test_no_episode_is_begun_that_the_money_does_not_reach_for(textbench, prices):
    command = (*ALWAYS, "--scenario", "rock-paper-scissors-tft", "--max-concurrency", 1)
    textbench(*command, "--episodes", 1, "--out", "one")
    each = cost_in("one")  # all have as many answers
    limited = textbench(*command, "--episodes", 9, "--max-cost", 3.5 * each, "--out", "limited")
    assert f"{3 * each:.4f} USD spent" in limited.err
    nothing = textbench(*ALWAYS, *LAKE, "--out", "r", "--max-cost", 0)
    assert "0.0000 USD spent of --max-cost 0;" in nothing.err


def test_short_episodes_that_finish_first_dont_make_others_begin_that_cant_be_finished(textbench, prices):
    dollars = 0.1
    command = (*ALWAYS, "--scenario", "snake", "--episodes", 60)
    assert "the money is used up" in textbench(*command, "--max-cost", dollars, "--out", "r").err
    (row,) = json.loads(textbench("leaderboard", "r", "--json").out)["scores"]
    assert 0.85 * dollars < row["cost"] <= dollars


def test_unreadable_answers_are_counted_by_reason(textbench):
    done = textbench("run", *agent("Babbler"), *LAKE, "--episodes", 30, "--json", "--out", "r")
    (row,) = json.loads(done.out)["scores"]
    assert set(row["invalid_reasons"]) == {"empty", "no_tag", "unclosed_tag", "unknown_name", "several_tags"}
    steps = steps_in("r")
    invalid = [step for step in steps if not step.valid]
    assert sum(row["invalid_reasons"].values()) == len(invalid)
    assert row["invalid_rate"]["value"] == pytest.approx(len(invalid) / len(steps))
    assert {step.action for step in invalid} == {"left", "down", "right", "up"}


def test_tables_go_to_stdout_and_progress_to_stderr(textbench):
    done = textbench("run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", 3, "--out", "r")
    assert "frozen-lake" in done.out
    assert "0 is the best play that doesn't read, 1 is optimal play" in " ".join(done.out.split())
    assert "3/3 episodes" in done.err
    assert "textbench replay r" in done.err
    assert "\x1b" not in done.out
    assert textbench(*RANDOM, "--episodes", 3).err == ""
