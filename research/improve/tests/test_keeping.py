"""An improvement is kept like a run: it resumes where it was stopped, costs what it cost, and leaves others alone."""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from agents import Episode
from agents.common.locking import LOCK_NAME, FolderLock
from agents.models.provider import model_folder
from agents.models.served.model import ServedModel
from benchmark.errors import UsageError
from benchmark.play.claims import AGENT_NAME, from_anywhere
from benchmark.runs.folder import EPISODES_NAME
from research.improve.agents import CALLS_NAME
from research.improve.budget import Budget, BudgetSpentError, SpendingMeter, Spent
from research.improve.improvers import IMPROVERS, checked, find_improver
from research.improve.keeping import ABOUT, EVALUATION, SECONDS
from research.improve.methods import learning
from research.improve.methods.writing import PROGRAM, PROGRAMS
from research.improve.task import PLAYER, Play, means_in_common
from research.improve.tests.conftest import task_of
from tests.agents.openai_server import OpenAIServer
from tests.links import TARGETS, drafts_of, planted
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS
from textgames.settings import taken_by

RANDOM = {"spec": "random"}
LIBRARY = (
    *("improve", "library", "--agent", "openai:heeding", "--set", "writer=openai:wise", "--set", "seeds=8"),
    *("--seed", "2", "--scenario", "frozen-lake", "--eval-episodes", "3", "--quiet", "--mode", "direct"),
)


def test_only_training_seeds_are_played_and_the_same_play_is_played_and_charged_once(tmp_path):
    names = ("frozen-lake", "frozen-lake-slippery")
    one = task_of(tmp_path, RANDOM, *names)
    seeds = one.seeds(5)
    assert set(seeds) <= set(TRAINING_SEEDS)
    assert not set(seeds) & set(one.seeds(5, after=5))
    assert SCENARIOS["frozen-lake"].first_seed > max(TRAINING_SEEDS)
    play = one.play(one.agent, seeds)
    assert play.returns.keys() == {(name, seed) for name in names for seed in seeds}
    assert play.mean == pytest.approx(sum(play.returns.values()) / 10)
    lines, spent = (play.folder / "episodes.jsonl").read_bytes(), one.meter.spent
    assert spent.calls == sum(len(record.steps) for record in play.records)
    assert one.play(one.agent, seeds) == play
    assert one.meter.spent == spent
    again = task_of(tmp_path, RANDOM, *names)
    assert again.play(again.agent, seeds) == play
    assert again.meter.spent == spent  # as dear as the first time, since it takes the same decisions by it
    assert (play.folder / "episodes.jsonl").read_bytes() == lines
    assert again.play({"spec": "random", "seed": 1}, seeds).folder != play.folder
    assert again.play(again.agent, seeds, resample=1).folder != play.folder


def test_a_limit_is_said_before_anything_new_is_begun(tmp_path):
    one = task_of(tmp_path, RANDOM, calls=3)
    one.meter.charge(Spent(calls=3))
    with pytest.raises(BudgetSpentError, match="the budget is spent: 3 of 3 calls"):
        one.play(one.agent, one.seeds(2))
    two = task_of(tmp_path / "two", RANDOM, seconds=0.001)
    with pytest.raises(BudgetSpentError, match="seconds"):
        two.play(two.agent, two.seeds(200))
    meter = SpendingMeter(Budget(tokens=10), tmp_path / "seconds.json")
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
        task_of(tmp_path, RANDOM)


@pytest.mark.parametrize(
    ("agent", "unit", "most"),
    [("random", "calls", 30), ("random", "calls", 1), pytest.param("tiny", "tokens", 1500, marks=pytest.mark.slow)],
)
def test_a_play_stops_where_the_budget_is_spent_and_a_second_call_plays_no_more(tmp_path, agent, unit, most):
    """Also what went into unfinished episodes is spent: else every further call would spend as much again."""
    first = task_of(tmp_path, {"spec": agent}, **{unit: most})
    with pytest.raises(BudgetSpentError, match=f"the budget is spent: .* of {most:,} {unit}"):
        first.play(first.agent, first.seeds(12))
    spent = getattr(first.meter.spent, unit)
    assert most < spent <= most + (1 if unit == "calls" else 500)
    (lines,) = tmp_path.glob("plays/*/episodes.jsonl")
    before = lines.read_bytes()
    second = task_of(tmp_path, {"spec": agent}, **{unit: most})
    with pytest.raises(BudgetSpentError, match=unit):
        second.play(second.agent, second.seeds(12))
    assert (lines.read_bytes(), getattr(second.meter.spent, unit)) == (before, spent)
    more = task_of(tmp_path, {"spec": agent})
    assert len(more.play(more.agent, more.seeds(12)).records) == 12


def test_a_play_that_a_budget_reaches_for_is_played_to_its_end(tmp_path):
    one = task_of(tmp_path, RANDOM)
    one.play(one.agent, one.seeds(5))
    two = task_of(tmp_path / "two", RANDOM, calls=one.meter.spent.calls)
    assert len(two.play(two.agent, two.seeds(5)).records) == 5
    assert two.meter.spent.calls == one.meter.spent.calls


def test_a_player_that_missed_the_hard_seed_is_not_better_for_it():
    def played(**returns: float) -> Play:
        places = [("guess-number", int(seed[1:]), None, {"player_0": PLAYER}, ()) for seed in returns]
        ends = [({"player_0": value}, {}, True, False) for value in returns.values()]
        return Play(Path("play"), {}, tuple(Episode(*one, *end) for one, end in zip(places, ends, strict=True)))

    good, broken_off = played(s1=-3, s2=-3, s3=-9), played(s1=-4, s2=-4)
    assert good.mean < broken_off.mean
    assert means_in_common([good, broken_off]) == pytest.approx([-3, -4])
    assert means_in_common([good, played(s9=0)]) == [0, 0]  # nothing is known


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("imitate", {"examples": "x"}, "must be a whole number, got 'x'"),
        ("imitate", {"examples": 0}, "option examples of imitate must be at least 1, got 0"),
        ("offline", {"rank": -1}, "option rank of offline must be at least 0, got -1"),
        ("offline", {"methd": "filtered"}, "no option of offline named 'methd'; did you mean 'method'"),
        ("offline", {"method": "best"}, "the option method of offline must be one of"),
        ("imitat", {}, "no improver named 'imitat'; did you mean 'imitate'"),
    ],
)
def test_options_are_those_of_the_function_with_its_types(method, given, message):
    assert checked("offline", {"learn_from": "a,b", "rank": 0})["learn_from"] == ["a", "b"]
    with pytest.raises(UsageError, match=message):
        checked(method, given)


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
def test_the_help_of_a_method_describes_each_of_its_options(name, textbench):
    told = " ".join(textbench("improve", name, "--help").out.split()).partition(f"options of {name}:")[2]
    for option, parameter in taken_by(find_improver(name), arguments=1).named.items():
        about = re.search(rf"--set {option}=VALUE (.+?)(?= --set |$)", told)
        assert about is not None, option
        assert parameter.default is None or f"(default {parameter.default})" in about[1]
    assert "arXiv" in find_improver(name).__doc__ + sys.modules[find_improver(name).__module__].__doc__
    assert "options of" not in textbench("improve", "--help").out


def test_a_folder_of_somebody_else_or_in_which_another_process_works_is_left_alone(textbench):
    for name in ("mine", "o"):
        Path(name).mkdir()
    Path("mine/diary.txt").write_text("dear diary")
    improve = ("improve", "library", "--agent", "random", "--scenario", "frozen-lake", "--out")
    assert "mine isn't empty (it holds 'diary.txt')" in textbench(*improve, "mine").err
    with FolderLock(Path("o")):  # as another process holds it
        done = textbench(*improve, "o")
    assert "o is in use by another textbench process; wait for it, or choose another folder" in done.err
    assert [path.name for path in (*Path("mine").iterdir(), *Path("o").iterdir())] == ["diary.txt", LOCK_NAME]


def files(out: Path) -> list[object]:
    """Return what has to be the same, whatever stopped it."""
    about = json.loads((out / "improvement.json").read_text())
    about["spent"].pop("seconds")
    calls = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    told = [[call["question"], call["answer"], call["tokens"]] for call in calls]
    return [(out / AGENT_NAME).read_text(), about, told, sorted(folder.name for folder in (out / "plays").iterdir())]


@pytest.mark.slow
def test_killed_at_any_moment_it_resumes_and_ends_as_if_nothing_had_happened(textbench, server):
    assert textbench(*LIBRARY, "--out", "whole").code == 0
    other = textbench(*LIBRARY, "--set", "tries=1", "--out", "whole")
    assert other.err == "textbench: whole was made with options, tries = 15, now it is 1: choose another --out\n"
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


IMPROVED = (ABOUT, SECONDS, AGENT_NAME, EVALUATION, PROGRAM, PROGRAMS, CALLS_NAME, LOCK_NAME, "programs", "plays")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_an_improvement_follows_no_link(textbench, server, target):
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


def test_what_the_agent_names_here_is_named_by_whole_paths(workplace):
    """Else its folder would name nothing, or something else, wherever it is moved."""
    for name in ("model", "openai"):
        Path(name).mkdir()
    Path("mask.py").write_text("def allowed(observation, legal):\n    return legal\n")
    here, table = Path.cwd(), {"spec": "masked(hf:model)", "program": "mask.py", "prompts": "brief"}
    assert from_anywhere(table) == {**table, "spec": f"masked(hf:{here}/model)", "program": f"{here}/mask.py"}
    for spec in ("openai:openai", "hf:org/model", "tiny"):
        assert from_anywhere({"spec": spec}) == {"spec": spec}


def test_an_outage_is_named_and_the_same_command_plays_again(textbench):
    """Every episode failed: as long as the server is gone nothing can be known, and nothing may be taken for played."""
    with OpenAIServer(faults={"401": 1.0}) as server:
        command = ("improve", "library", "--agent", "openai:m", "--scenario", "frozen-lake", "--set", "seeds=2")
        options = ("--base-url", server.base_url, "--max-retries", 0, "--eval-episodes", 0, "--set", "tries=1")
        done = textbench(*command, *options, "--out", "o", "--quiet")
        assert done.code == 1
        assert re.search(
            "could be played to its end, the last for: .*401.* the same command plays them again", done.err
        )
        server.faults = {}
        assert textbench(*command, *options, "--out", "o", "--quiet").code == 0


def test_a_writer_is_asked_as_patiently_as_the_agent(tmp_path):
    asked = {"base_url": "http://127.0.0.1:9/v1", "max_retries": 0, "patience": 7.0, "temperature": 0.5}
    mine = replace(task_of(tmp_path, RANDOM), agent={"spec": "openai:m", **asked})
    writer = mine.questions("openai:w")._policy.model
    assert isinstance(writer, ServedModel)
    assert (writer._max_retries, writer._patience) == (0, 7.0)


@pytest.fixture
def few_compared(monkeypatch):
    """As many episodes as tell tiny from tiny-lake, which succeed in 0.28 and 0.98."""
    monkeypatch.setattr(learning, "COMPARED", 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "trained", "made"), [("tiny-lake", "tiny", "tiny-lake"), ("tiny", "tiny-lake", f"hf:{learning.MODEL}")]
)
def test_what_plays_better_is_handed_back_and_compared_where_the_budget_is_spent_too(
    tmp_path, few_compared, agent, trained, made
):
    copytree(model_folder(trained), tmp_path / learning.MODEL)
    task = task_of(tmp_path, {"spec": agent}, said=(said := []), seconds=1.0, tokens=1)
    assert learning.learnt(task, task.agent) == {"spec": made}
    assert "before" in "".join(said)
    assert ("no better" in said[-1]) == (made == agent)  # a model that was spoilt
    assert task.meter.spent.tokens > 1  # the comparison is part of what it costs
    assert task.meter.budget == Budget(seconds=1.0, tokens=1)


def test_an_agent_that_could_not_be_compared_stays_as_it_was(tmp_path, few_compared):
    task = task_of(tmp_path, {"spec": "tiny"}, said=(said := []), calls=30)
    assert not learning.plays_better(task, task.agent, {"spec": "tiny-lake"})
    assert "nobody knows" in said[-1]


@pytest.mark.parametrize(("scenario", "seats"), [("tic-tac-toe", 2), ("werewolf-5", 5)])
def test_in_a_game_for_several_two_agents_meet_and_each_has_every_seat_once(scenario, seats, tmp_path):
    task = task_of(tmp_path, RANDOM, scenario)
    before, after = task.both(RANDOM, {"spec": "planner"}, task.seeds(5))
    assert len(before.returns) == len(after.returns) == 5
    held = Counter((one.seed, player, who) for one in after.records for player, who in one.agents.items())
    assert set(held.values()) == {1}
    assert len(held) == 5 * seats * 2
    if scenario == "tic-tac-toe":
        assert before.mean == -after.mean < 0  # the same games, in which one wins what the other loses
        assert task.is_better(after, before)
        assert not task.is_better(before, after)


@pytest.mark.slow
def test_a_spent_budget_is_mended_by_a_larger_one_in_the_same_folder(improve, few_compared):
    small = {"method": "context", "episodes": 6, "attempts": 1}

    def learn(calls: int):
        improve("offline", "tiny", "--budget-calls", calls, **small)

    with pytest.raises(AssertionError, match="of 20 calls, before 6 episodes were played, which is what it learns"):
        learn(20)
    (own,) = Path("o/plays").glob("own-1-*/episodes.jsonl")
    played = own.read_text()
    learn(2000)
    assert own.read_text().startswith(played)
    assert own.read_text().count("\n") == 6
    with pytest.raises(AssertionError, match="was made with budget, calls = 2000, now it is 3000"):
        learn(3000)
