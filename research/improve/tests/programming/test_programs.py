"""``program`` and ``code-model``: a gain with a good writer, none with a useless one. All answers are hand-written."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agents import Episode, Step, Turn
from research.improve.methods.programming.rules_explain import Explained
from research.improve.methods.programming.social import social_metrics
from research.improve.methods.programming.versions import Version, tree
from research.improve.methods.programming.writing import program_in, scenario_of

ROOT = Path(__file__).parents[4]
METHODS = {
    "program": ("program", "--set", "generations=2", "--set", "children=1", "--set", "seeds=6"),
    "code-model": ("code-model", "--set", "rounds=2", "--set", "episodes=8", "--set", "seeds=6"),
}


@pytest.fixture(scope="module")
def writing_url():
    command = [sys.executable, "-m", "research.improve.tests.programming.writing_server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture
def improve(workplace, textbench, writing_url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")

    def run(method: str, model: str, *more: str, scenario: str = "frozen-lake") -> Any:
        return textbench(
            *("improve", *METHODS[method], "--agent", f"openai:{model}", "--base-url", writing_url, "--out", "better"),
            *("--scenario", scenario, "--mode", "direct", "--eval-episodes", 3, "--json", *more),
        )

    return run


def about() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Path("better/improvement.json").read_text())
    return told


def tried() -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(Path("better/programs.json").read_text())
    return told


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("model", [pytest.param("good", marks=SLOW), "learning"])
@pytest.mark.parametrize("method", [pytest.param("program", marks=SLOW), "code-model"])
def test_a_good_writer_gains_everything_and_the_folder_plays_without_it(improve, textbench, method, model):
    done = improve(method, model)
    assert done.code == 0, done.err
    (before,), (after,) = about()["before"], about()["after"]
    assert (before["success_rate"]["value"], after["success_rate"]["value"]) == (0, 1)
    kind = "program" if method == "program" else "rules"
    assert tomllib.loads(Path("better/agent.toml").read_text())["spec"] == f"{kind}:program.py"
    calls = Path("better/calls.jsonl").read_text().splitlines()
    assert len(calls) == len(tried()) == (1 if model == "good" else 2)  # a right program ends it
    if method == "program":
        last = tried()[-1]
        assert (last["mean"], last["legal"], last["generation"]) == (1.0, 1.0, len(calls))
    Path("better").rename("moved")  # the folder is whole, and asks no model
    played = textbench("run", "--agent", "moved", "--scenario", "frozen-lake", "--episodes", 3, "--out", "run")
    assert played.code == 0, played.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("program", "useless"),
        *(pytest.param("code-model", each, marks=SLOW) for each in ("useless", "broken", "talking")),
        *(pytest.param("program", each, marks=SLOW) for each in ("broken", "talking")),
    ],
)
def test_a_useless_writer_changes_nothing(improve, method, model):
    done = improve(method, model, "--set", "seconds=0.1", "--eval-episodes", 0)
    assert done.code == 0, done.err
    assert "no better agent was found" in done.err
    assert about()["changed"] is False
    assert tomllib.loads(Path("better/agent.toml").read_text())["spec"] == f"openai:{model}"
    wrong = {"useless": None, "broken": "no block with a program", "talking": "took more than 0.1 seconds"}[model]
    if wrong is not None:
        told = [one["error"] if method == "program" else one["failures"][0] for one in tried()]
        assert all(wrong in each for each in told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "model", "rounds", "success", "actions"),
    [
        ("chain", "stubborn-1", 5, 0, ["write", *["better"] * 4]),
        ("tree", "stubborn-2", 5, 1, ["write", "better", "write"]),
        ("tree", "mending", 2, 1, ["write", "fix"]),
        ("tree", "useless", 3, 0, ["write", "better", "write"]),
        ("text", "checking", 5, 1, ["text", "check"]),
        ("text", "checking", 1, None, ["text"]),  # unchecked
        ("text", "useless", 3, 0, ["text"]),  # it finds its program right
        ("text", "broken", 2, 0, ["text", "text"]),
    ],
)
def test_a_search_of_versions(improve, search, model, rounds, success, actions):
    done = improve("code-model", model, "--set", f"search={search}", "--set", f"rounds={rounds}")
    assert done.code == 0, done.err
    assert [one["action"] for one in tried()] == actions
    (after,) = about()["after"] or about()["before"]
    assert after["success_rate"]["value"] == success if success is not None else after["success_rate"]["value"] < 1
    assert any("random" in folder.name for folder in Path("better/plays").glob("*")) == (search != "text")
    if search == "text":
        assert "Played:" not in Path("better/calls.jsonl").read_text()


@pytest.mark.slow
def test_the_text_of_a_game_for_several_is_enough(improve):
    done = improve("code-model", "good", "--set", "search=text", scenario="nim")
    assert done.code == 0, done.err
    assert about()["changed"] is True
    refused = improve("code-model", "good", "--set", "search=tree", "--out", "other", scenario="nim")
    assert (refused.code, "one player unless search=text, got nim" in refused.err) == (2, True)


def version(share: float, parent: Version | None = None, **about: Any) -> Version:
    return Version("write", parent, Explained(Path("a.py"), 0, (), **({"runs": True} | about)), share)


def test_the_tree_goes_where_the_bound_is_highest():
    a, b = version(0.8), version(0.2)
    assert tree([]) == ("write", None)
    assert tree([a]) == ("better", a)
    assert tree([version(0.0, runs=False)])[0] == "fix"
    # of two versions at the root: 0.5 + sqrt(ln 2 / 2) / 2 = 0.79 for another, 0.8 + sqrt(ln 2) / 2 = 1.22 below a
    assert tree([a, b]) == ("better", a)
    # with four fruitless ones below it, a has 0.16 + sqrt(ln 6 / 5) / 2 = 0.46, b 0.2 + sqrt(ln 6) / 2 = 0.87
    worse = [version(0.0, a) for _ in range(4)]
    assert tree([a, b, *worse]) == ("write", None)  # 0.5 + sqrt(ln 6 / 2) / 2 = 0.97
    assert tree([a, b, *[version(0.1) for _ in range(6)], *worse]) == ("better", b)


@pytest.mark.slow
def test_a_second_call_finds_everything_done_and_a_spent_budget_ends_it(improve):
    done = improve("program", "learning", "--budget-calls", "80")
    assert done.code == 0, done.err
    assert "the budget is spent" in done.err
    calls = Path("better/calls.jsonl").read_text()
    Path("better/agent.toml").unlink()  # as if it had been stopped before
    again = improve("program", "learning", "--budget-calls", "80")
    assert again.code == 0, again.err
    assert Path("better/calls.jsonl").read_text() == calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "feedback", "gains"),
    [("learning", "social", True), ("learning", "reward", False), ("useless", "social", False)],
)
def test_a_writer_that_reads_social_metrics_gains_in_a_dilemma(
    workplace, textbench, writing_url, monkeypatch, model, feedback, gains
):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    done = textbench(
        *("improve", *METHODS["program"], "--set", f"feedback={feedback}", "--agent", f"openai:{model}"),
        *("--base-url", writing_url, "--mode", "direct", "--out", "better", "--eval-episodes", 0),
        *("--scenario", "prisoners-dilemma", "--quiet"),
    )
    assert done.code == 0, done.err
    assert about()["changed"] is gains
    assert [one["mean"] for one in tried()] == [10, 30 if gains else 10]  # all defect, or all cooperate
    last = json.loads(Path("better/calls.jsonl").read_text().splitlines()[-1])
    told = "- efficiency 2.000 (", "- equality 1.000 (", "- sustainability 4.500 ("
    assert all((each in json.dumps(last)) is (feedback == "social") for each in told)


def test_programs_are_written_for_a_game_of_ones_own_too():
    assert scenario_of("research.worlds:Economist-v0").horizon == 3


def test_social_metrics_by_hand():
    def episode(rewards, **more):
        steps = [
            Step(index, player, "", Turn(""), "", True, None, reward)
            for player, own in rewards.items()
            for index, reward in enumerate(own)
        ]
        returns = {player: float(sum(own)) for player, own in rewards.items()}
        return Episode("a", 0, None, dict.fromkeys(rewards, "x"), tuple(steps), returns, {}, True, False, **more)

    # 4 rounds with 3 and 1: 4 / 4; 1 - (2 + 2) / (2 * 2 * 4); rounds 0, 1, 3 and round 3, on average 4/3 and 3
    unequal = episode({"player_0": [1, 1, 0, 1], "player_1": [0, 0, 0, 1]})
    assert social_metrics([unequal]) == pytest.approx({"efficiency": 1, "equality": 0.75, "sustainability": 13 / 6})
    assert social_metrics([episode({"player_0": [-1], "player_1": [0]})]) == {"efficiency": -1}
    # the game's own hold, and what an episode hasn't is no part of the mean
    own = {"efficiency": 0.5, "peace": 1.5, "hits": 3.0}
    owned = episode({"player_0": [0, 0, 0, 2], "player_1": [0, 0, 0, 0]}, metrics={"player_0": own})
    told = social_metrics([unequal, owned])
    assert told == pytest.approx({"efficiency": 0.75, "equality": 0.625, "sustainability": 31 / 12, "peace": 1.5})


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("```python\na = 1\n```", "a = 1\n"),
        ("First\n```\nx\n```\nthen\n```py\ndef act(): pass\n```", "def act(): pass\n"),
        ("```python\ndef act(): pass", "def act(): pass\n"),  # cut off at the limit of tokens
        ("def act(): pass", "def act(): pass\n"),
        ("<think>```\na_first_draft = 1\n```</think>```\na = 1\n```", "a = 1\n"),
        ("I can't.", ""),
        ("", ""),
    ],
)
def test_a_program_is_found_in_an_answer(answer, program):
    assert program_in(answer) == program
