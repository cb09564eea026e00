"""``textbench improve world-model``: what is taught, and that who learnt nothing of the world changes nobody."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.load import load_agent
from agents.turn import TurnRequest
from research.improve.around.reading import TrueWorld, taken_apart
from research.improve.methods.predicting.world_model import transitions
from textgames.frozen_lake.text import read_observation
from textgames.scenarios import SCENARIOS


def asked_and_told(scenario: str, wanted: int, **options: int) -> list[tuple[TurnRequest, str]]:
    """Transitions with the requests themselves in place of their prompts."""
    requests: Any = lambda request: request  # noqa: E731
    return [(one.prompt, one.response) for one in transitions([SCENARIOS[scenario]], wanted, requests, **options)]  # type: ignore[misc]


def test_without_chance_what_is_taught_is_what_the_rules_say():
    taught = asked_and_told("frozen-lake", 60)
    assert len(taught) == 60
    said = TrueWorld().act([request for request, _ in taught])
    assert [turn.response for turn in said] == [told for _, told in taught]
    assert {taken_apart(request)[1] for request, _ in taught} == {"left", "down", "right", "up"}


def test_with_chance_it_is_as_frequent_as_the_rules_say():
    """On slippery ice an answer is what happens in a third of the cases."""
    taught = asked_and_told("frozen-lake-slippery", 900)
    dry = SCENARIOS["frozen-lake"].game()
    as_meant = [
        told == dry.observe(dry.transition(state, {"player_0": action}, np.random.default_rng(0))[0], "player_0")
        for request, told in taught
        for now, action in [taken_apart(request)]
        for state in [read_observation(now.observation)]
    ]
    assert 0.25 < np.mean(as_meant) < 0.75


def test_scenarios_share_the_transitions_and_parts_have_other_ones():
    requests: Any = lambda request: request.instructions  # noqa: E731
    both = [SCENARIOS[name] for name in ("frozen-lake", "frozen-lake-slippery")]
    told = [str(one.prompt) for one in transitions(both, 31, requests)]
    assert sorted(told.count(rules) for rules in set(told)) == [15, 16]
    first, second = (asked_and_told("frozen-lake", 20, part=part) for part in (0, 1))
    assert [told for _, told in first] != [told for _, told in second]


@pytest.mark.nightly
def test_a_model_that_knows_nothing_changes_nobody(textbench):
    options = [word for pair in ("examples=64", "rank=0") for word in ("--set", pair)]
    what = ("--agent", "tiny", "--scenario", "frozen-lake", "--out", "made", "--quiet")
    done = textbench("improve", "world-model", *what, *options)
    assert done.code == 0, done.err
    assert json.loads(Path("made/improvement.json").read_text())["changed"] is False
    assert Path("made/agent.toml").read_text() == 'spec = "tiny"\n'
    world = load_agent("hf:made/model")
    assert world.prompt_map.mode == "direct"  # type: ignore[attr-defined]
    found = textbench("inspect", "hf:made/model", "--world-model", "--starts", "3", "--json")
    assert json.loads(found.out)["possible"]["value"] < 0.5
