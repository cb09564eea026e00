"""An improvement is kept like a run: it goes on where it was stopped, costs what it cost, and leaves others alone."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agents.common.locking import LOCK_NAME, FolderLock
from agents.models.served.model import ServedModel
from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.play.claims import AGENT_NAME, from_anywhere
from benchmark.runs.folder import EPISODES_NAME
from research.improve.budget import Budget, BudgetSpentError, SpendingMeter, Spent
from research.improve.improvers import IMPROVERS, checked, find_improver
from research.improve.keeping import ABOUT, EVALUATION, SECONDS
from research.improve.methods.programming.writing import PROGRAM, PROGRAMS
from research.improve.questions import CALLS_NAME
from research.improve.task import ImprovementTask
from tests.agents.openai_server import OpenAIServer
from tests.links import TARGETS, drafts_of, planted
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS
from textgames.settings import taken_by

NO_LIMIT = Budget()
LIBRARY = (
    *("improve", "library", "--agent", "openai:heeding", "--set", "writer=openai:wise", "--set", "seeds=8"),
    *("--seed", "2", "--scenario", "frozen-lake", "--eval-episodes", "3", "--quiet", "--mode", "direct"),
)


def task(out: Path, *, budget: Budget = NO_LIMIT, scenarios: tuple[str, ...] = ("frozen-lake",)) -> ImprovementTask:
    out.mkdir(exist_ok=True)
    meter = SpendingMeter(budget, out / "seconds.json")
    return ImprovementTask({"spec": "random"}, scenarios, meter, 3, out, lambda message: None, quiet=True)


def test_only_training_seeds_are_played_and_the_same_play_is_played_and_charged_once(workplace):
    one = task(workplace / "out", scenarios=("frozen-lake", "frozen-lake-slippery"))
    seeds = one.seeds(5)
    assert set(seeds) <= set(TRAINING_SEEDS)
    assert not set(seeds) & set(one.seeds(5, after=5))
    play = one.play(one.agent, seeds)
    assert play.returns.keys() == {(name, seed) for name in one.scenarios for seed in seeds}
    assert play.mean == pytest.approx(sum(play.returns.values()) / 10)
    lines = (play.folder / "episodes.jsonl").read_bytes()
    spent = one.meter.spent
    assert spent.calls == sum(len(record.steps) for record in play.records)
    assert one.play(one.agent, seeds) == play
    assert one.meter.spent == spent
    again = task(workplace / "out", scenarios=one.scenarios)
    assert again.play(again.agent, seeds) == play
    assert again.meter.spent == spent  # as dear as the first time, since it takes the same decisions by it
    assert (play.folder / "episodes.jsonl").read_bytes() == lines
    assert again.play({"spec": "random", "seed": 1}, seeds).folder != play.folder
    assert again.play(again.agent, seeds, resample=1).folder != play.folder


def test_a_limit_is_said_before_anything_new_is_begun(workplace):
    one = task(workplace / "out", budget=Budget(calls=3))
    one.meter.charge(Spent(calls=3))
    with pytest.raises(BudgetSpentError, match="the budget is spent: 3 of 3 calls"):
        one.play(one.agent, one.seeds(2))
    two = task(workplace / "two", budget=Budget(seconds=0.001))
    with pytest.raises(BudgetSpentError, match="seconds"):
        two.play(two.agent, two.seeds(200))
    meter = SpendingMeter(Budget(tokens=10), workplace / "seconds.json")
    meter.charge(Spent(tokens=9), "a")
    meter.charge(Spent(tokens=9), "a")
    meter.check()
    meter.charge(Spent(tokens=1))
    with pytest.raises(BudgetSpentError, match="10 of 10 tokens"):
        meter.check()


@pytest.mark.parametrize("damaged", ['{"play": {"tok', '{"play": {"tokens": 1, "cost": 2}}', '{"play": "soon"}', "[1]"])
def test_a_damaged_file_of_what_was_spent_is_one_sentence(tmp_path, damaged):
    (tmp_path / "seconds.json").write_text(damaged, encoding="utf-8")
    with pytest.raises(UsageError, match=r"seconds\.json doesn't say what was spent: .*; choose another --out"):
        SpendingMeter(NO_LIMIT, tmp_path / "seconds.json")


@pytest.mark.parametrize(
    ("agent", "unit", "most"),
    [("random", "calls", 30), ("random", "calls", 1), pytest.param("tiny", "tokens", 1500, marks=pytest.mark.slow)],
)
def test_a_play_stops_where_the_budget_is_spent_and_a_second_call_plays_no_more(workplace, agent, unit, most):
    """Also what went into unfinished episodes is spent: else every further call would spend as much again."""
    first = task(workplace / "out", budget=Budget(**{unit: most}))
    with pytest.raises(BudgetSpentError, match=f"the budget is spent: .* of {most:,} {unit}"):
        first.play({"spec": agent}, first.seeds(12))
    spent = getattr(first.meter.spent, unit)
    assert most < spent <= most + (1 if unit == "calls" else 500)
    (lines,) = (workplace / "out/plays").glob("*/episodes.jsonl")
    before = lines.read_bytes()
    second = task(workplace / "out", budget=first.meter.budget)
    with pytest.raises(BudgetSpentError, match=unit):
        second.play({"spec": agent}, second.seeds(12))
    assert (lines.read_bytes(), getattr(second.meter.spent, unit)) == (before, spent)
    more = task(workplace / "out")
    assert len(more.play({"spec": agent}, more.seeds(12)).records) == 12


def test_a_play_that_a_budget_reaches_for_is_played_to_its_end(workplace):
    one = task(workplace / "out")
    one.play(one.agent, one.seeds(5))
    two = task(workplace / "two", budget=Budget(calls=one.meter.spent.calls))
    assert len(two.play(two.agent, two.seeds(5)).records) == 5
    assert two.meter.spent.calls == one.meter.spent.calls


def test_options_are_those_of_the_function_with_its_types():
    assert checked("offline", {"learn_from": "a,b", "top": "0.5"})["learn_from"] == ["a", "b"]
    with pytest.raises(UsageError, match="must be a whole number, got 'x'"):
        checked("imitate", {"examples": "x"})
    for method, option, value in (("imitate", "examples", 0), ("imitate", "examples", -5), ("gepa", "seeds", 0)):
        with pytest.raises(UsageError, match=f"option {option} of {method} must be at least 1, got {value}"):
            checked(method, {option: value})
    with pytest.raises(UsageError, match="option rank of offline must be at least 0, got -1"):
        checked("offline", {"rank": -1})
    with pytest.raises(UsageError, match="no option of offline named 'methd'; did you mean 'method'"):
        checked("offline", {"methd": "filtered"})
    with pytest.raises(UsageError, match="the option method of offline must be one of"):
        checked("offline", {"method": "best"})
    with pytest.raises(UsageError, match="no improver named 'imitat'; did you mean 'imitate'"):
        checked("imitat", {})


def test_improvers_of_other_packages_are_found(textbench, tmp_path, monkeypatch):
    folder = tmp_path / "others-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[textbench.improvers]\nluck = others:LUCK\nlost = others:LOST\n")
    (tmp_path / "others.py").write_text(
        "from research.improve.improvers import Improver\n"
        "def same(task, *, often: int = 3):\n    return task.agent\n"
        "LUCK = Improver('others:same', 'hopes for the best')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert checked("luck", {"often": 4}) == {"often": 4}
    monkeypatch.delitem(sys.modules, "research.improve.cli", raising=False)  # a command line is read once in a process
    assert "luck hopes for the best" in " ".join(textbench("improve", "--help").out.split())
    with pytest.raises(UsageError, match=r"the improver lost \(others:LOST\) can't be imported"):
        find_improver("lost")


@pytest.mark.parametrize("name", IMPROVERS)
def test_every_improver_has_options_with_types_and_a_description_of_each(name):
    function = find_improver(name)
    for option in list(checked(name, {})):
        assert f"\n        {option}: " in function.__doc__
    assert "arXiv" in sys.modules[function.__module__].__doc__


@pytest.mark.slow
def test_a_folder_of_another_improvement_or_of_somebody_else_is_left_alone(textbench, server):
    assert textbench(*LIBRARY, "--set", "tries=0", "--out", "o").code == 0
    done = textbench(*LIBRARY, "--set", "tries=1", "--out", "o")
    assert (done.code, done.err) == (
        2, "textbench: o was made with options, tries = 0, now it is 1: choose another --out\n"
    )  # fmt: skip
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("dear diary")
    assert "mine isn't empty (it holds 'diary.txt')" in textbench(*LIBRARY, "--out", "mine").err
    assert [path.name for path in Path("mine").iterdir()] == ["diary.txt"]


def test_a_folder_in_which_another_process_works_is_left_alone(textbench, workplace):
    Path("o").mkdir()
    with FolderLock(Path("o")):  # as another process holds it
        done = textbench("improve", "library", "--agent", "random", "--scenario", "frozen-lake", "--out", "o")
    assert (done.code, [path.name for path in Path("o").iterdir()]) == (2, [LOCK_NAME])
    assert "o is in use by another textbench process; wait for it, or choose another folder" in done.err


def files(out: Path) -> dict[str, bytes]:
    """What has to be the same, whatever stopped it."""
    found = {name: (out / name).read_bytes() for name in ("agent.toml",)}
    about = json.loads((out / "improvement.json").read_text())
    about["spent"].pop("seconds")
    calls = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    told = [[call["question"], call["answer"], call["tokens"]] for call in calls]
    plays = sorted(folder.name for folder in (out / "plays").iterdir())
    return found | {"about": json.dumps([about, told, plays]).encode()}


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_ends_as_if_nothing_had_happened(textbench, server):
    assert textbench(*LIBRARY, "--out", "whole").code == 0
    command = [sys.executable, "-m", "benchmark.cli", *LIBRARY, "--out", "killed"]
    hits = 0
    for until in ("plays/*/episodes.jsonl", "calls.jsonl", "plays/library*/episodes.jsonl"):
        process = subprocess.Popen(command)
        while process.poll() is None and not list(Path("killed").glob(until)):
            time.sleep(0.001)
        time.sleep(0.05)
        hits += process.poll() is None
        process.kill()
        process.wait()
    assert hits == 3
    assert textbench(*LIBRARY, "--out", "killed").code == 0
    assert files(Path("killed")) == files(Path("whole"))
    assert SCENARIOS["frozen-lake"].first_seed > max(TRAINING_SEEDS)


IMPROVED = (ABOUT, SECONDS, AGENT_NAME, EVALUATION, PROGRAM, PROGRAMS, CALLS_NAME, LOCK_NAME, "programs", "plays")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_an_improvement_goes_on_through_no_link(textbench, server, target):
    """Nor does one that is stopped after its last question and before its agent is written."""
    assert textbench(*LIBRARY, "--eval-episodes", "0", "--out", "o").code == 0
    (Path("o") / AGENT_NAME).unlink()
    lines = (Path("o") / CALLS_NAME).read_text().splitlines(keepends=True)
    (Path("o") / CALLS_NAME).write_text("".join(lines[:-1]) + lines[-1][:10])  # killed while it wrote
    names = [*IMPROVED, *(draft for name in IMPROVED for draft in drafts_of(name))]
    names += [f"{play.relative_to('o')}/{EPISODES_NAME}" for play in Path("o").glob("plays/*")][:2]
    codes = set()
    for folder, what in planted(Path("o"), names, (target,)):
        done = textbench(*LIBRARY, "--eval-episodes", "0", "--out", folder)
        codes.add(done.code)
        assert "Traceback" not in done.err, what
        assert done.code == 0 or done.err.count("\n") == 1, (what, done)
    assert codes >= {2}


def test_what_the_agent_names_here_is_named_by_whole_paths(textbench, workplace):
    """Else its folder would name nothing, or something else, wherever it is moved."""
    for name in ("model", "openai"):
        Path(name).mkdir()
    Path("mask.py").write_text("def allowed(observation, legal):\n    return legal\n")
    here = Path.cwd()
    table = {"spec": "masked(hf:model)", "program": "mask.py", "prompts": "brief", "temperature": 0.5}
    assert from_anywhere(table) == {**table, "spec": f"masked(hf:{here}/model)", "program": f"{here}/mask.py"}
    for spec in ("openai:openai", "hf:org/model", "tiny"):
        assert from_anywhere({"spec": spec}) == {"spec": spec}
    command = ("improve", "offline", "--agent", "program:mine.py", "--scenario", "frozen-lake", "--quiet")
    Path("mine.py").write_text("def act(observation, legal):\n    return legal[0]\n")
    assert textbench(*command, "--set", "method=context").code == 2
    assert textbench(*command, "--set", "method=context").err.count(str(here / "mine.py")) == 1


def test_an_outage_is_named_and_the_same_command_plays_again(textbench):
    """Every episode failed: as long as the server is gone nothing can be known, and nothing may be taken for played."""
    with OpenAIServer(faults={"401": 1.0}) as server:
        command = ("improve", "library", "--agent", "openai:m", "--scenario", "frozen-lake", "--set", "seeds=2")
        options = ("--base-url", server.base_url, "--max-retries", 0, "--eval-episodes", 0, "--set", "tries=1")
        done = textbench(*command, *options, "--out", "o", "--quiet")
        assert done.code == 1
        assert "could be played to its end, the last for: " in done.err
        assert "401" in done.err
        assert "when that is mended the same command plays them again" in done.err
        server.faults = {}
        assert textbench(*command, *options, "--out", "o", "--quiet").code == 0


def test_a_writer_is_asked_as_patiently_as_the_agent(workplace):
    asked = {"base_url": "http://127.0.0.1:9/v1", "max_retries": 0, "patience": 7.0, "temperature": 0.5}
    mine = replace(task(workplace / "out"), agent={"spec": "openai:m", **asked})
    writer = mine.questions("openai:w")._policy.model
    assert isinstance(writer, ServedModel)
    assert (writer._max_retries, writer._patience) == (0, 7.0)


@pytest.mark.parametrize("name", IMPROVERS)
def test_the_help_of_a_method_describes_each_of_its_options(name, capsys):
    assert main(["improve", name, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    told = words.partition(f"options of {name}:")[2]
    for option, parameter in taken_by(find_improver(name), arguments=1).named.items():
        about = re.search(rf"--set {option}=VALUE (.+?)(?= --set |$)", told)
        assert about is not None, option
        assert parameter.default is None or f"(default {parameter.default})" in about[1]
    assert main(["improve", "--help"]) == 0
    assert "options of" not in capsys.readouterr().out
