"""``evolve``: settings, players around it and a text gain together; useless choices and helpers change nothing."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from research.improve.budget import Budget, SpendingMeter, Spent
from research.improve.methods.rewriting.evolve import agent_of, crossed, space_of
from research.improve.tests.heeding_server import ADVICE


@pytest.fixture
def evolve(textbench):
    def run(agent, choices, *more, seeds=20):
        done = textbench(
            *("improve", "evolve", "--agent", agent, "--scenario", "frozen-lake", "--eval-episodes", 0),
            *("--set", f"choices={choices}", "--set", f"seeds={seeds}", "--out", "made", *more),
        )
        return done, tomllib.loads(Path("made/agent.toml").read_text()) if done.code == 0 else {}

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choices", "spec", "ranked"),
    [
        pytest.param(
            "temperature=0.3,temperature=4.0,spec=search(AGENT),rank_by=exact", "search(tiny)", "exact", id="good"
        ),
        pytest.param("temperature=2.0", "tiny", None, id="its own"),
        pytest.param("temperature=4.0,max_tokens=9", "tiny", None, id="worse"),
    ],
)
def test_a_search_that_pays_is_found_and_useless_choices_change_nothing(evolve, choices, spec, ranked):
    done, agent = evolve("tiny", choices, "--temperature", 2.0, "--set", "children=12")
    assert done.code == 0, done.err
    assert (agent["spec"], agent.get("rank_by")) == (spec, ranked)
    assert ranked or agent == {"spec": "tiny", "temperature": 2.0}


@pytest.mark.slow
def test_the_best_is_handed_back_only_if_it_gains_on_other_seeds(evolve):
    more = ("--set", "children=2", "--set", "surety=99")
    done, agent = evolve("tiny", "temperature=0.3,spec=search(AGENT)", "--temperature", 2.0, *more)
    assert "on 20 other seeds: " in done.err
    assert agent == {"spec": "tiny", "temperature": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize("helper", ["wise", "useless", "broken"])
def test_a_writer_makes_the_text(server, evolve, helper):
    more = ("--mode", "direct", "--temperature", 0.5, "--set", f"writer=openai:{helper}", "--set", "children=6")
    done, agent = evolve("openai:heeding", "temperature=0.0", *more, seeds=6)
    assert done.code == 0, done.err
    assert (ADVICE in agent.get("system", "")) == (helper == "wise")


def test_children_have_settings_of_both_parents():
    mother, father, names = {"a": 1, "b": 2}, {"c": 3}, ["a", "b", "c"]
    children = [crossed(mother, father, names, np.random.default_rng(seed)) for seed in range(200)]
    assert {frozenset(child) for child in children} == {
        frozenset(s) for s in ("", "a", "b", "c", "ab", "ac", "bc", "abc")
    }
    assert all(child[name] == {**mother, **father}[name] for child in children for name in child)


def test_choices_are_options_of_the_agent_and_of_players_around_it(evolve):
    space = space_of("tiny", ["temperature=1", "spec=router(AGENT, tiny-lake)", "least=0.5", "temperature=0.5"])
    assert space == {"temperature": [1.0, 0.5], "spec": ["router(AGENT, tiny-lake)"], "least": [0.5]}
    assert agent_of({"spec": "tiny", "mode": "think"}, {"least": 0.5}) == {"spec": "tiny", "mode": "think"}
    for choice, said in (("proposals=4", "no setting in choices named 'proposals'"), ("spec=serch(AGENT)", "search")):
        done, _ = evolve("tiny", choice)
        assert done.code == 2
        assert said in done.err


def test_a_budget_keeps_what_the_comparison_takes(tmp_path):
    meter = SpendingMeter(Budget(calls=100), tmp_path / "seconds")
    meter.charge(Spent(calls=40))
    assert meter.reaches(2, 3)  # 20 each
    assert not meter.reaches(2, 4)
