"""``textbench dynamic-program``: a right writer gets every optimum, in whatever form, and a useless one none."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import textgames
from research.improve.dynamic_programs.cli import solved
from research.improve.dynamic_programs.problems import FOLDER, NAMES, Problem
from tests.agents.openai_server import OpenAIServer
from textgames.solving import ValueIteration

SOURCES = {name: (FOLDER / f"{name}.py").read_text().split('"""\n', 1)[1] for name in NAMES}
STOPPING = """
def problem(): return {"start": [3, 0], "horizon": None, "discount": 1.0}
def actions(state): return ["stop"] * (state[0] < 3) + ["roll"] * (state[0] > 0)
def outcomes(state, action):
    left, side = state
    return [(1.0, state, side, True)] if action == "stop" else [(1 / 6, [left - 1, n], 0, False) for n in range(1, 7)]
"""
MACHINE = """
def problem(): return {"start": [0, 0], "horizon": 6, "discount": 1.0}
def actions(state): return ["replace", "keep"]
def outcomes(state, action):
    month, worn = state
    worn = 0 if action == "replace" else worn
    paid = 0.9 ** month * ([5, 3, 0][worn] - 6 * (action == "replace"))
    worse = [0.4, 0.5, 0][worn]
    return [(worse, [month + 1, min(worn + 1, 2)], paid, False), (1 - worse, [month + 1, worn], paid, False)]
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


def answer(request: Mapping[str, Any]) -> str:
    """Answer as each of the writers does."""
    prompt = " ".join(message["content"] for message in request["messages"])
    (name,) = [each for each in NAMES if Problem(each).text in prompt]
    source = {
        "right": SOURCES[name],
        "otherwise": {"stopping": STOPPING, "machine": MACHINE}.get(name, SOURCES[name]),
        "hasty": SOURCES[name].replace('"horizon": ', '"horizon": 1 + '),
        "useless": USELESS,
    }.get(request["model"])
    return "I can't." if source is None else f"Here it is:\n```python\n{source}\n```"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("writer", "right"), [("right", 6), ("otherwise", 6), ("hasty", 1), ("useless", 0), ("silent", 0)]
)
def test_how_many_a_writer_gets_exactly_right(writer, right, workplace, textbench, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-needed")
    with OpenAIServer(respond=answer, models=("right", "otherwise", "hasty", "useless", "silent")) as server:
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
    assert ValueIteration(lake).value(start, 8, "player_0") == pytest.approx(
        float(Problem("lake").optimum()), abs=1e-12
    )


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


def test_a_problem_that_there_is_not(workplace, textbench):
    done = textbench("dynamic-program", "--agent", "openai:m", "--problem", "quue")
    assert (done.code, "did you mean 'queue'" in done.err) == (2, True)
