"""The command line for people: help, names that nearly exist, one sentence for every mistake."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmark.cli import COMMANDS, LAB, main
from benchmark.cli.settings import schema_names
from tests.benchmark.helpers import ROOT, refused
from textgames.scenarios import SCENARIOS, SUITES


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
    refused(textbench("run", "--help", "snake"), "--help takes nothing or all, got 'snake'")


def test_the_overviews_name_every_command_once(textbench):
    for arguments, commands, others in (((), COMMANDS, LAB), (("lab",), LAB, COMMANDS)):
        out = textbench(*arguments, "--help").out
        assert all(f"\n  {name} " in out for name in commands)
        assert not [name for name in others if f"\n  {name} " in out]
    assert (textbench().code, textbench("lab").code) == (2, 0)  # the pages say that the second lists the commands
    assert textbench("lab", "schema", "episode") == textbench("schema", "episode")
    assert len(COMMANDS) <= 12
    assert textbench("--version").out.startswith(f"textbench {version('textbench')}")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("rnu",), "no command named 'rnu'; did you mean 'run'?"),
        (("lab", "run"), "no command of the lab named 'run'; there are: "),
        (("run", "--agent", "plannr"), "unknown agent 'plannr' (did you mean 'planner'?)"),
        (("run", "--agent", "gpt-4o-mini"), "unknown agent 'gpt-4o-mini' (did you mean openai:gpt-4o-mini, a model"),
        (("run", "--agent", "mny(random)"), "unknown agent 'mny(random)' (did you mean 'many'?)"),
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
        (("run", "--suite", "planing"), "no suite named 'planing'; did you mean 'planning'?"),
        (("run", "--scenario", "chess"), "no scenario named 'chess'; there are: all, "),
        (("run", "--agnet", "random"), "there is no option '--agnet' (did you mean '--agent'?)"),
        (("run", "--episodes", "0"), "--episodes must be a whole number from 1 to 10,000,000, got '0'"),
        (("run", "--seed-offset", str(2**63)), "--seed-offset must be a whole number from 0 to 4,503,599,627,370,496"),
        (("run", "--timeout", "1e400"), "--timeout must be a number above 0 and at most 1,000,000, got '1e400'"),
        (("run", "--top-p", "0"), "--top-p must be a number above 0 and at most 1, got '0'"),
        (("run", "--agent", "openai:gpt-4o-mini"), "export OPENAI_API_KEY="),
        (("run", "--agent", "openai:m", "--base-url", "nonsense"), "the base URL has the form http://HOST:PORT/v1"),
        (("run", "--agent", "random", "--prices", "no.toml"), "can't read the price file no.toml: No such file"),
        (("resume", "nowhere"), "there is no nowhere"),
        (("resume", "."), "isn't a textbench run: it has no manifest.json"),
        (("leaderboard",), "there is no run in runs/; name a run folder, or make one: textbench run"),
        (("play", "all"), "play one scenario, 'all' is several"),
        (("play", "snake", "--against", "planner"), "snake is played alone: leave out --against planner"),
        (("exploitability", "random", "--scenario", "frozen-lake"), "defined for games of two players, and FrozenLake"),
        (("exploitability", "random", "--scenario", "connect-four-small"), "don't have perfect recall"),
        (("run", "--agent", "random", "--until", "0.05", "--scenario", "snake-duel"), "'snake-duel' has several"),
        (("merge", "x", "--out", "x"), "--out is one of the runs to merge"),
        (("merge", "x", "y", "./x", "--out", "z"), "a run is named twice"),
        (("schema",), "say which schema to print, manifest, episode, run-config, training-config"),
        (("export",), "say what to write: --csv, --parquet, --plot, --sft or --preferences FILE"),
        (("doctor", "--agent", "planner", "--agent", "tiny"), "--agent takes one value and was given 'planner' and"),
        (("run", "--agent", "planner", "--ray-workers", "2"), "--ray-workers is of a cluster, and this run is on none"),
        (("export", "--csv", "x.csv", "--keep", "best"), "--keep changes nothing without --sft"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(textbench, workplace, added_players, command, sentence):
    refused(textbench(*command), sentence)
    assert list(workplace.iterdir()) == []  # said before anything is played or made


def test_mistakes_about_a_run(textbench, small_run):
    page = "no/such/folder/page.html"
    mistakes = {
        "compare random greedly --in small": "no agent in these results named 'greedly'; did you mean 'greedy'?",
        "replay small --agent rando": "no agent in this run named 'rando'; did you mean 'random'?",
        "export small --csv - --agent greedy --agent x": "no agent in these results named 'x'",
        "export small --csv a --sft a": "--csv and --sft both write to a",
        "export small --parquet -": "--parquet takes a file",
        "export small --sft a.jsonl --mode thnk": "did you mean 'think'",
        "export small --csv x.csv --plot x.docx": "ends with .svg, .png or .pdf, got 'x.docx'",
        f"leaderboard small --html {page}": f"can't write {page}: there is no folder no/such/folder; mkdir -p no/such/",
        f"replay small --seed {10**30}": f"has no finished episode with seed {10**30}; without",
        "replay small --episode 0": "--episode must be from 1 to 12 here, got 0",
        "submit small": "choose with --agent random|greedy",
        "submit small --agent greedy": "an entry needs the first 50 episodes or more of 'frozen-lake'",
        "validate small": "is a run, not an entry; make one: textbench submit",
    }
    for command, sentence in mistakes.items():
        refused(textbench(*command.split()), sentence)
    assert [path.name for path in Path().iterdir()] == ["small"]  # said before anything is written


def test_the_published_schemas_are_those_of_the_code(textbench):
    """After a change: textbench schema --out docs/schemas."""
    assert textbench("schema", "--out", "schemas").code == 0
    assert sorted(path.stem for path in Path("schemas").iterdir()) == sorted(schema_names())
    for name in schema_names():
        published = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
        assert json.loads(Path(f"schemas/{name}.json").read_text()) == published
        assert published["additionalProperties"] is False


@pytest.mark.slow
def test_who_stops_reading_makes_no_error(small_run):
    reading, writing = os.pipe()
    os.close(reading)
    process = [sys.executable, "-m", "benchmark.cli", "export", "small", "--csv", "-"]
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
@pytest.mark.parametrize("file", ["-", "/dev/full"])
def test_a_full_disk_is_one_sentence_and_exit_code_2(small_run, file, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "")
    command = [sys.executable, "-m", "benchmark.cli", "export", "small", "--csv", file]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "No space left on device" in done.stderr


def test_file_and_environment_give_options_too_and_what_is_misspelt_there_is_refused(textbench, monkeypatch):
    lines = ('suites = ["planning"]', 'protocol = "retry:3"', 'agents = ["random"]', "episodes = 9")
    Path("run.toml").write_text("\n".join(lines))
    planned = json.loads(textbench("run", "--config", "run.toml", "--dry-run", "--json", "--episodes", 2).out)
    assert {row["episodes"] for row in planned["matchups"]} == {2}, "the command line goes before the file"
    assert {row["scenario"] for row in planned["matchups"]} == set(SUITES["planning"])
    assert planned["requests_at_most"] == 4 * 2 * sum(SCENARIOS[name].horizon for name in SUITES["planning"])
    for text, sentence in (
        ("epsiodes = 5", "no option of a run (in run.toml) named 'epsiodes'; did you mean 'episodes'?"),
        ("episodes = true", "episodes in run.toml must be a whole number from 1 to 10,000,000, got True"),
        ("agents = [1]", "agents in run.toml must be a text, got 1"),
    ):
        Path("run.toml").write_text(text)
        refused(textbench("run", "--config", "run.toml"), sentence)
    monkeypatch.setenv("TEXTBENCH_SCENARIOS", "snake,frozen-lake(is_slippery=true,size=6)")
    monkeypatch.setenv("TEXTBENCH_EPISODES", "2")
    monkeypatch.setenv("TEXTBENCH_UPDATE_GOLDEN", "1")  # which is of the tests
    found = json.loads(textbench("run", "--agent", "random", "--dry-run", "--json").out)
    assert [row["scenario"] for row in found["matchups"]] == ["snake", "frozen-lake(is_slippery=true,size=6)"]
    assert found["episodes"] == 4
    for name, value, said in (
        ("TEXTBENCH_EPISODES", "two", "TEXTBENCH_EPISODES must be a whole number"),
        ("TEXTBENCH_EPISODS", "3", "named 'TEXTBENCH_EPISODS'; did you mean 'TEXTBENCH_EPISODES'?"),
    ):
        monkeypatch.setenv(name, value)
        assert said in textbench("run", "--dry-run").err


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
