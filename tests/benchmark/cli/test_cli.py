"""The command line for people: help, names that nearly exist, one sentence for every mistake."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.cli import COMMANDS, LAB, main
from benchmark.cli.settings import schema_names
from textgames.scenarios import SCENARIOS, SUITES

ROOT = Path(__file__).parents[3]


def test_every_command_has_help_with_its_options(capsys):
    for name in COMMANDS | LAB:
        if name != "train":
            assert main([name, "--help"]) == 0
            out = capsys.readouterr().out
            assert f"usage: textbench {name}" in out
            assert (f"textbench lab {name} is the same" in out) == (name in LAB)
            assert "  textbench lab " not in out, "examples have the one spelling that all pages have"


def test_help_fits_a_screen_and_shows_the_rest_on_request(textbench):
    short, everything = textbench("run", "--help").out, textbench("run", "--help", "all").out
    shown, there = (set(re.findall(r"^  (--[a-z-]+)", out, re.MULTILINE)) for out in (short, everything))
    assert len(shown) <= 15
    assert len(short.splitlines()) <= 45
    assert shown < there
    assert f"{len(there) - len(shown)} more options: textbench run --help all" in short
    refused = textbench("run", "--help", "snake")
    assert refused.code == 2
    assert "--help takes nothing or all, got 'snake'" in refused.err


def test_the_overviews_name_every_command_once(textbench):
    for arguments, commands, others in (((), COMMANDS, LAB), (("lab",), LAB, COMMANDS)):
        out = textbench(*arguments, "--help").out
        assert all(f"\n  {name} " in out for name in commands)
        assert not [name for name in others if f"\n  {name} " in out]
    assert (textbench().code, textbench("lab").code) == (2, 0)  # the pages say that the second lists the commands
    assert len(COMMANDS) <= 12
    assert "textbench lab        lists the commands of research and upkeep" in textbench("--help").out


def test_a_command_of_the_lab_is_the_same_with_and_without_it(textbench):
    assert "usage: textbench lab schema" in textbench("lab", "schema", "--help").out
    assert textbench("lab", "schema", "episode") == textbench("schema", "episode")
    assert textbench("lab", "schema") == textbench("schema")
    assert textbench("lab", "schema").code == 2


def test_the_version_is_the_packages(textbench):
    from importlib.metadata import version

    assert textbench("--version").out.startswith(f"textbench {version('textbench')}")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("rnu",), "no command named 'rnu'; did you mean 'run'?"),
        (("lab", "run"), "no command of the lab named 'run'; there are: "),
        (("run", "--agent", "plannr"), "unknown agent 'plannr' (did you mean 'planner'?)"),
        (("run", "--agent", "nonsense:thing"), "unknown agent 'nonsense:thing'"),
        (("run", "--agent", "gpt-4o-mini"), "unknown agent 'gpt-4o-mini' (did you mean openai:gpt-4o-mini, a model"),
        (("run", "--agent", "Qwen/Qwen3-0.6B"), "(did you mean hf:Qwen/Qwen3-0.6B, a model in this process, or op"),
        (("doctor", "--agent", "gpt-5"), "(did you mean openai:gpt-5, a model behind a server?)"),
        (("run", "--agent", "mny(random)"), "unknown agent 'mny(random)' (did you mean 'many'?)"),
        (("run", "--agent", "many(random"), "unknown agent 'many(random' (its bracket isn't closed)"),
        (("run", "greedy"), "'greedy' stands where an option is wanted: write --agent greedy or --scenario greedy"),
        (("run", "--agent", "random,planner"), "repeat --agent for each, as in --agent random --agent planner"),
        (("run", "--agent", "random", "planner"), "repeat it: --agent ... --agent planner"),
        (
            ("run", "--scenario", "TextSnake-v0"),
            "'TextSnake-v0' is a game, not a scenario of it; its scenarios are snake, snake-long, snake-poison, sna",
        ),
        (("run", "--scenario", "OpenSpiel-v0"), "textgames:OpenSpiel-v0 is the game with the settings that it was"),
        (("run", "--scenario", "frozen-lak"), "no scenario named 'frozen-lak'; did you mean 'frozen-lake'?"),
        (("run", "--scenario", "frozen-lake-level-11"), "level must be a whole number from 1 to 10, got 11"),
        (("run", "--scenario", "snake-level-2"), "no scenario named 'snake-level-2'; snake has no levels"),
        (("run", "--scenario", "taxi-twin-1"), "no scenario named 'taxi-twin-1'; taxi has no twins"),
        (("run", "--suite", "planing"), "no suite named 'planing'; did you mean 'planning'?"),
        (("run", "--scenario", "chess"), "no scenario named 'chess'; there are: all, "),
        (
            ("run", "--scenario", "frozen-lake-twin-2-level-3"),
            "'frozen-lake-twin-2-level-3' is frozen-lake-level-3-twin-2",
        ),
        (("run", "--scenario", "frozen-lake-twin-0"), "'frozen-lake-twin-0' is frozen-lake"),
        (("run", "--agnet", "random"), "there is no option '--agnet' (did you mean '--agent'?)"),
        (("run", "--episodes", "many"), "--episodes must be a whole number from 1 to 10,000,000, got 'many'"),
        (("run", "--episodes", "0"), "--episodes must be a whole number from 1 to 10,000,000, got '0'"),
        (("run", "--episodes", "9" * 5000), "to 10,000,000, got '99999"),
        (("run", "--seed-offset", str(2**63)), "--seed-offset must be a whole number from 0 to 4,503,599,627,370,496"),
        (("run", "--max-concurrency", "1" + "0" * 20), "--max-concurrency must be a whole number from 1 to 100,000"),
        (("run", "--timeout", "0"), "--timeout must be a number above 0 and at most 1,000,000, got '0'"),
        (("run", "--timeout", "1e400"), "--timeout must be a number above 0 and at most 1,000,000, got '1e400'"),
        (("run", "--max-cost", "inf"), "--max-cost must be a number from 0 to 1,000,000,000, got 'inf'"),
        (("run", "--temperature", "nan"), "--temperature must be a number from 0 to 100, got 'nan'"),
        (("run", "--top-p", "0"), "--top-p must be a number above 0 and at most 1, got '0'"),
        (("run", "--agent", "random", "--agent", "random"), "two agents are named 'random'"),
        (("run", "--agent", "openai:gpt-4o-mini"), "export OPENAI_API_KEY="),
        (("run", "--agent", "openai:m", "--base-url", "nonsense"), "the base URL has the form http://HOST:PORT/v1"),
        (("run", "--agent", "random", "--prices", "no.toml"), "can't read the price file no.toml: No such file"),
        (("run", "--config", "no.toml"), "can't read the configuration file no.toml: No such file"),
        (("resume", "nowhere"), "there is no nowhere"),
        (("resume", "."), "isn't a textbench run: it has no manifest.json"),
        (("leaderboard",), "there is no run in runs/; name a run folder, or make one: textbench run"),
        (("play", "snak"), "no scenario named 'snak'; did you mean 'snake'?"),
        (("play", "all"), "play one scenario, 'all' is several"),
        (("play", ":"), "the game ':' can't be imported"),
        (
            ("play", "snake", "--episode", str(10**20)),
            "--episode must be a whole number from 0 to 9,999,999, got '1000",
        ),
        (("play", "snake", "--against", "planner"), "snake is played alone: leave out --against planner"),
        (("play", "snake-duel", "--against", "plannr"), "did you mean 'planner'?"),
        (("exploitability", "random", "--scenario", "frozen-lake"), "defined for games of two players, and FrozenLake"),
        (
            ("exploitability", "random", "--scenario", "snake-duel"),
            "Snake has no initial_outcomes(), so the chances of",
        ),
        (("exploitability", "random", "--scenario", "connect-four-small"), "don't have perfect recall"),
        (("exploitability", "random", "--scenario", "strategy"), "'strategy' is several; see textbench list scenarios"),
        (("run", "--agent", "random", "--until", "0"), "--until must be a number above 0"),
        (("run", "--agent", "random", "--until", "0.05", "--scenario", "snake-duel"), "'snake-duel' has several"),
        (("validate", "nowhere"), "there is no nowhere"),
        (("merge", "nowhere", "--out", "x"), "there is no nowhere"),
        (("merge", "x", "--out", "x"), "--out is one of the runs to merge"),
        (("merge", "x", "y", "./x", "--out", "z"), "a run is named twice"),
        (("schema",), "say which schema to print, manifest, episode, run-config, training-config"),
        (("schema", "manifset"), "there is no 'manifset' (did you mean 'manifest'?); accepted: manifest,"),
        (("export",), "say what to write: --csv, --parquet, --plot, --sft or --preferences FILE"),
        (("doctor", "--agent", "planner", "--agent", "tiny"), "--agent takes one value and was given 'planner' and"),
        (("run", "--agent", "planner", "--ray-workers", "2"), "--ray-workers is of a cluster, and this run is on none"),
        (("export", "--csv", "x.csv", "--keep", "best"), "--keep changes nothing without --sft"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(textbench, workplace, added_players, command, sentence):
    done = textbench(*command)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.startswith("textbench: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert done.out == ""
    assert list(workplace.iterdir()) == []  # said before anything is played or made


def test_mistakes_about_a_run(textbench, small_run):
    for command, sentence in (
        (("compare", "random", "greedly"), "no agent in these results named 'greedly'; did you mean 'greedy'?"),
        (("compare", "random"), "comparing takes two agents"),
        (("replay", small_run, "--agent", "rando"), "no agent in this run named 'rando'; did you mean 'random'?"),
        (
            ("export", small_run, "--csv", "-", "--agent", "greedy", "--agent", "x"),
            "no agent in these results named 'x'",
        ),
        (("export", small_run, "--csv", "a", "--sft", "a"), "--csv and --sft both write to a"),
        (("export", small_run, "--csv", "-", "--preferences", "-"), "--csv and --preferences both write to -"),
        (("export", small_run, "--parquet", "-"), "--parquet takes a file"),
        (("export", small_run, "--sft", "nowhere/a.jsonl"), "there is no folder nowhere"),
        (("export", small_run, "--sft", "a.jsonl", "--mode", "thnk"), "did you mean 'think'"),
        (("export", small_run, "--csv", "x.csv", "--plot", "x.docx"), "ends with .svg, .png or .pdf, got 'x.docx'"),
        (("compare", "random", "random"), "comparing takes different agents, got 'random' twice"),
        (("leaderboard", small_run, "--max-episodes", "-1"), "must be a whole number from 1 to 999,999,999, got '-1'"),
        (
            ("leaderboard", small_run, "--html", "no/such/folder/page.html"),
            "can't write no/such/folder/page.html: there is no folder no/such/folder; mkdir -p no/such/folder",
        ),
        (("replay", small_run, "--seed", 10**30), f"has no finished episode with seed {10**30}; without"),
        (("replay", small_run, "--episode", 0), "--episode must be from 1 to 12 here, got 0"),
        (("submit", small_run), "choose with --agent random|greedy"),
        (("submit", small_run, "--agent", "greedy"), "an entry needs the first 50 episodes or more of 'frozen-lake'"),
        (("validate", small_run), "is a run, not an entry; make one: textbench submit"),
    ):
        done = textbench(*command, *(("--in", small_run) if command[0] == "compare" else ()))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
        assert sentence in done.err
    assert not Path("x.csv").exists()  # said before anything is written


def test_a_configuration_file_gives_the_options_and_the_command_line_goes_before_it(textbench):
    Path("run.toml").write_text(
        'agents = ["random", "g=greedy"]\nscenarios = ["frozen-lake"]\nepisodes = 2\nmax-concurrency = 4\nout = "r"\n'
    )
    assert textbench("run", "--config", "run.toml", "--episodes", 3, "--quiet").code == 0
    manifest = json.loads(Path("r/manifest.json").read_text())
    assert manifest["settings"]["episodes"] == 3
    assert [card["name"] for card in manifest["agents"]] == ["random", "g"]
    assert manifest["operation"]["max_concurrency"] == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epsiodes = 5", "no option of a run (in run.toml) named 'epsiodes'; did you mean 'episodes'?"),
        ('episodes = "5.5"', "episodes in run.toml must be a whole number from 1 to 10,000,000, got '5.5'"),
        ("episodes = true", "episodes in run.toml must be a whole number from 1 to 10,000,000, got True"),
        ("agents = [1]", "agents in run.toml must be a text, got 1"),
        ("episodes = ", "the configuration file run.toml isn't TOML"),
    ],
)
def test_mistakes_in_the_configuration_file(textbench, text, sentence):
    Path("run.toml").write_text(text)
    done = textbench("run", "--config", "run.toml")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


@pytest.mark.parametrize("name", schema_names())
def test_the_published_schemas_are_those_of_the_code(textbench, name):
    """After a change: textbench schema --out docs/schemas."""
    published = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    assert json.loads(textbench("schema", name).out) == published
    assert published["additionalProperties"] is False
    assert textbench("schema", "--out", "schemas").code == 0
    assert sorted(path.stem for path in Path("schemas").iterdir()) == sorted(schema_names())


def test_list_knows_all_scenarios_and_agents(textbench):
    done = textbench("list", "--json")
    document = json.loads(done.out)
    assert list(document["scenarios"]) == list(SCENARIOS)
    assert {"random", "greedy", "planner", "openai:MODEL"} <= {agent["spec"] for agent in document["agents"]}
    assert "snake-duel" in textbench("list", "scenarios").out


@pytest.mark.slow
@pytest.mark.parametrize("command", [("replay", "small", "--plain"), ("list",), ("export", "small", "--csv", "-")])
def test_who_stops_reading_makes_no_error(small_run, command):
    reading, writing = os.pipe()
    os.close(reading)
    process = [sys.executable, "-m", "benchmark.cli", *command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(process, stdout=closed, stderr=subprocess.PIPE, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_names_what_is_missing_and_the_command_for_it(textbench):
    document = json.loads(textbench("doctor", "--json").out)
    agents = {agent["spec"]: agent["missing"] for agent in document["agents"]}
    assert agents["planner"] is None
    assert "OPENAI_API_KEY" in agents["openai:MODEL"]
    assert document["packages"]["numpy"]
    done = textbench("doctor", "--agent", "planner")
    assert done.code == 0
    assert "one question to planner" in done.out


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("command", [("export", "r", "--csv", "-"), ("list",), ("export", "r", "--csv", "/dev/full")])
def test_a_full_disk_is_one_sentence_and_exit_code_2(textbench, command, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "")
    one = ["run", "--agent", "random", "--scenario", "frozen-lake", "--episodes", 1, "--quiet", "--out"]
    assert textbench(*one, "r").code == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "benchmark.cli", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    unwritable = textbench(*one, "/proc/r")
    assert unwritable.code == 2
    assert len(unwritable.err.splitlines()) == 1


def test_file_and_environment_give_options_too_and_a_misspelt_variable_is_refused(textbench, monkeypatch):
    Path("run.toml").write_text('suites = ["planning"]\nprotocol = "retry:3"\nagents = ["random"]\n')
    planned = json.loads(textbench("run", "--config", "run.toml", "--dry-run", "--json").out)
    assert {row["scenario"] for row in planned["matchups"]} == set(SUITES["planning"])
    most = sum(SCENARIOS[row["scenario"]].horizon * row["episodes"] for row in planned["matchups"])
    assert planned["requests_at_most"] == 4 * most
    monkeypatch.setenv("TEXTBENCH_SUITES", "paper,strategy")
    found = json.loads(textbench("run", "--agent", "random", "--dry-run", "--json").out)["matchups"]
    assert {row["scenario"] for row in found} == {*SUITES["paper"], *SUITES["strategy"]}
    monkeypatch.delenv("TEXTBENCH_SUITES")
    monkeypatch.setenv("TEXTBENCH_EPISODES", "2")
    monkeypatch.setenv("TEXTBENCH_AGENTS", "random,greedy")
    monkeypatch.setenv("TEXTBENCH_UPDATE_GOLDEN", "1")  # which is of the tests
    done = textbench("run", "--scenario", "frozen-lake", "--dry-run", "--json")
    assert json.loads(done.out)["episodes"] == 4
    monkeypatch.setenv("TEXTBENCH_EPISODES", "two")
    assert "TEXTBENCH_EPISODES must be a whole number" in textbench("run", "--dry-run").err
    monkeypatch.setenv("TEXTBENCH_EPISODS", "3")
    done = textbench("run", "--dry-run")
    assert (done.code, done.out) == (2, "")
    assert "named 'TEXTBENCH_EPISODS'; did you mean 'TEXTBENCH_EPISODES'?" in done.err


HEAVY = {"pydantic", "importlib.metadata", "numpy", "torch", "scipy", "gymnasium", "rich", "openai", "textgames"}


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [([["--help"], ["run", "--help"], ["export", "--help"]], HEAVY), ([["list"]], {"torch", "pyspiel"})],
    ids=["help", "list"],
)
def test_light_commands_load_no_heavy_module(commands, heavy):
    code = (
        f"import sys; from benchmark.cli import main\nfor one in {commands}: main(one)\n"
        f"heavy = {heavy} & set(sys.modules)\nsys.exit(f'imported {{heavy}}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_a_missing_package_comes_with_its_command(textbench, monkeypatch):
    monkeypatch.setattr("textgames.extras.find_spec", lambda package: None)
    done = textbench("serve", "frozen-lake")
    assert done.code == 2
    assert done.err.startswith("textbench: textbench serve needs what isn't installed, openenv: pip install ")
    assert '[openenv]"' in done.err
