"""Programs that a language model writes: a gain with a good writer, none with a useless one. All are hand-written."""

import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textgames
from agents import Episode, Step, Turn
from research.improve.dynamic_programs import FOLDER, NAMES, Problem, solved
from research.improve.methods.code_model import Explained, Version, tree
from research.improve.methods.program import social_metrics
from research.improve.methods.writing import program_in, scenario_of
from tests.agents.openai_server import OpenAIServer
from textgames.solving import ValueIteration

SMALL = {
    "program": {"generations": 2, "children": 1, "seeds": 6},
    "code-model": {"rounds": 2, "episodes": 8, "seeds": 6},
}


@pytest.fixture
def write(improve, writing_url, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")

    def run(method: str, model: str, *more: Any, scored: int = 0, scenario: str = "frozen-lake", **own: Any) -> Any:
        given = ("--base-url", writing_url, "--mode", "direct", *more)
        return improve(method, f"openai:{model}", *given, scenario=scenario, scored=scored, **(SMALL[method] | own))

    return run


def tried() -> list[dict[str, Any]]:
    return json.loads(Path("o/programs.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["good", "learning"])
@pytest.mark.parametrize(("method", "kind"), [("program", "program"), ("code-model", "rules")])
def test_a_good_writer_gains_everything_and_the_folder_plays_without_it(write, textbench, method, kind, model):
    done = write(method, model, scored=3)
    assert done.scores() == [0, 1]
    assert done.agent["spec"] == f"{kind}:program.py"
    calls = Path("o/calls.jsonl").read_text().splitlines()
    assert len(calls) == len(tried()) == (1 if model == "good" else 2)  # a right program ends it
    if method == "program":
        last = tried()[-1]
        assert (last["mean"], last["legal"], last["generation"]) == (1.0, 1.0, len(calls))
    Path("o").rename("moved")  # the folder is whole, and asks no model
    played = textbench("run", "--agent", "moved", "--scenario", "frozen-lake", "--episodes", 3, "--out", "run")
    assert played.code == 0, played.err


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
@pytest.mark.parametrize(
    ("model", "wrong"),
    [("useless", ""), ("broken", "no block with a program"), ("talking", "took more than 0.1 seconds")],
)
def test_a_useless_writer_changes_nothing(write, method, model, wrong):
    done = write(method, model, seconds=0.1)
    assert "no better agent was found" in done.err
    assert (done.changed, done.agent["spec"]) == (False, f"openai:{model}")
    told = [one["error"] if method == "program" else one["failures"][0] for one in tried()]
    assert all(wrong in (each or "") for each in told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "model", "rounds", "success", "actions"),
    [
        ("chain", "stubborn-1", 5, 0, ["write", *["better"] * 4]),
        ("tree", "stubborn-2", 5, 1, ["write", "better", "write"]),
        ("tree", "mending", 2, 1, ["write", "fix"]),
        ("text", "checking", 5, 1, ["text", "check"]),
        ("text", "checking", 1, None, ["text"]),  # unchecked
        ("text", "useless", 3, 0, ["text"]),  # it finds its program right
        ("text", "broken", 2, 0, ["text", "text"]),
    ],
)
def test_a_search_of_versions(write, search, model, rounds, success, actions):
    done = write("code-model", model, scored=3, search=search, rounds=rounds)
    assert [one["action"] for one in tried()] == actions
    (after,) = done.about["after"] or done.about["before"]
    assert after["success_rate"]["value"] == success if success is not None else after["success_rate"]["value"] < 1
    assert any("random" in folder.name for folder in Path("o/plays").glob("*")) == (search != "text")
    if search == "text":
        assert "Played:" not in Path("o/calls.jsonl").read_text()


@pytest.mark.slow
def test_a_second_call_finds_everything_done_and_a_spent_budget_ends_it(write):
    assert "the budget is spent" in write("program", "learning", "--budget-calls", "80").err
    calls = Path("o/calls.jsonl").read_text()
    Path("o/agent.toml").unlink()  # as if it had been stopped before
    write("program", "learning", "--budget-calls", "80")
    assert Path("o/calls.jsonl").read_text() == calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "feedback", "gains"),
    [("learning", "social", True), ("learning", "reward", False), ("useless", "social", False)],
)
def test_a_writer_that_reads_social_metrics_gains_in_a_dilemma(write, model, feedback, gains):
    assert write("program", model, scenario="prisoners-dilemma", feedback=feedback).changed is gains
    assert [one["mean"] for one in tried()] == [10, 30 if gains else 10]  # all defect, or all cooperate
    last = Path("o/calls.jsonl").read_text().splitlines()[-1]
    told = "- efficiency 2.000 (", "- equality 1.000 (", "- sustainability 4.500 ("
    assert all((each in last) is (feedback == "social") for each in told)


def test_the_tree_goes_where_the_bound_is_highest():
    def version(share: float, parent: Version | None = None, runs: bool = True) -> Version:
        return Version("write", parent, Explained(Path("a.py"), 0, (), runs), share)

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


def test_programs_are_written_for_a_game_of_ones_own_too():
    assert scenario_of("research.worlds:Economist-v0").horizon == 3


def test_social_metrics_by_hand():
    def episode(rewards, **more):
        paid = [(index, player, each) for player, own in rewards.items() for index, each in enumerate(own)]
        steps = tuple(Step(index, player, "", Turn(""), "", True, None, reward) for index, player, reward in paid)
        returns = {player: float(sum(own)) for player, own in rewards.items()}
        return Episode("a", 0, None, dict.fromkeys(rewards, "x"), steps, returns, {}, True, False, **more)

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
    ],
)
def test_a_program_is_found_in_an_answer(answer, program):
    assert program_in(answer) == program


SOURCES = {name: (FOLDER / f"{name}.py").read_text().split('"""\n', 1)[1] for name in NAMES}
STOPPING = """
def problem(): return {"start": [3, 0], "horizon": None, "discount": 1.0}
def actions(state): return ["stop"] * (state[0] < 3) + ["roll"] * (state[0] > 0)
def outcomes(state, action):
    left, side = state
    return [(1.0, state, side, True)] if action == "stop" else [(1 / 6, [left - 1, n], 0, False) for n in range(1, 7)]
"""
USELESS = """
def problem(): return {"start": 0, "horizon": 9, "discount": 1}
def actions(state): return ["wait"]
def outcomes(state, action): return [(1, state, 0, False)]
"""
LYING = """
import json
say = json.dumps  # what the process sends
json.dumps = lambda told, **how: say([told[0], "value", "best"] if "value" in str(told) else told, **how)
"""


def written(request: Mapping[str, Any]) -> str:
    """Answer as each of the writers does."""
    prompt = " ".join(message["content"] for message in request["messages"])
    (name,) = [each for each in NAMES if Problem(each).text in prompt]
    source = {
        "right": {**SOURCES, "stopping": STOPPING}[name],  # in another form than ours
        "hasty": SOURCES[name].replace('"horizon": ', '"horizon": 1 + '),
        "useless": USELESS,
    }.get(request["model"])
    return "I can't." if source is None else f"Here it is:\n```python\n{source}\n```"


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "right"), [("right", 6), ("hasty", 1), ("useless", 0), ("silent", 0)])
def test_how_many_a_writer_gets_exactly_right(writer, right, textbench, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    with OpenAIServer(respond=written, models=("right", "hasty", "useless", "silent")) as server:
        command = ("dynamic-program", "--agent", f"openai:{writer}", "--base-url", server.base_url)
        done = textbench(*command, "--json")
        assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["right"], told["of"]) == (right, 6)
    assert {row["problem"] for row in told["problems"]} == {*NAMES}
    if writer == "hasty":  # another bet doesn't help a gambler that plays boldly
        assert [row["problem"] for row in told["problems"] if row["right"]] == ["gambler"]
    again = textbench(*command)  # what was asked is kept: the server has gone
    assert again.code == 0, again.err
    assert f"{right} of 6 are exactly right." in again.out


@pytest.mark.parametrize(
    ("name", "steps", "start", "by_hand"),
    [
        ("stopping", None, None, Fraction(14, 3)),  # stop at 5, then at 4: 1/3 * 5.5 + 2/3 * 4.25
        ("gambler", None, None, Fraction(32, 125)),  # boldly from 3 to 6, then to 8 or back to 4: p * (p + (1 - p) * p)
        ("inventory", 1, None, Fraction(3, 2)),  # one is sold with 3/4: 15/4 - 2 - 1/4
        ("machine", 2, None, Fraction(878, 100)),  # 5 + 0.9 * (0.6 * 5 + 0.4 * 3)
        ("machine", 2, "broken", Fraction(278, 100)),  # replaced: 6 less
        ("queue", 1, 2, Fraction(-11, 3)),  # slowly: 2 + 2/3 * 1/2 * 5
    ],
)
def test_the_truth_is_what_one_computes_by_hand(name, steps, start, by_hand):
    assert Problem(name).optimum(steps, start) == by_hand


def test_the_lake_is_worth_what_the_game_is():
    lake = textgames.game_of("TextFrozenLake-v0", desc=("SFF", "FHF", "FHG"), is_slippery=True)
    start = lake.initial_state(np.random.default_rng(0))  # the same for every seed
    true = float(Problem("lake").optimum())
    assert ValueIteration(lake).value(start, 8, "player_0") == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        (USELESS.replace('"horizon": 9, ', ""), "problem() is a dict with start, horizon and discount, got"),
        (USELESS.replace('"discount": 1', '"discount": 2'), "discount above 0 and up to 1, got 9 and 2.0"),
        (USELESS.replace("[(1, state", "[(1, state + 1"), "there are more than 5 states"),
        (USELESS.replace("(1, state", "(0.5, state"), "probabilities sum to 1, got 0.5"),
        (USELESS.replace("def actions", "def choices"), "has no function actions(state)"),
        (USELESS.replace('["wait"]', "1 / 0"), "ZeroDivisionError"),
        (USELESS + LYING, "the program answered in the solver's place"),
    ],
)
def test_a_program_that_is_none_is_told_apart(source, wrong):
    value, why = solved(source, 5.0, 5)
    assert value is None
    assert wrong in str(why)


def test_as_many_states_are_allowed_as_are_said():
    assert solved(SOURCES["queue"], 5.0, 3) == (pytest.approx(float(Problem("queue").optimum())), None)
    assert solved(SOURCES["queue"], 5.0, 2)[0] is None


def test_a_problem_that_there_is_not(textbench):
    done = textbench("dynamic-program", "--agent", "openai:m", "--problem", "quue")
    assert (done.code, "did you mean 'queue'" in done.err) == (2, True)
