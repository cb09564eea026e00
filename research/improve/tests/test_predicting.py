"""A learned step value and a learned world: what they are taught, by hand, and what a player gains by them."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents import TurnRequest, load_agent
from benchmark.show import RecordedDecision
from research.improve.around.choosing import SearchPolicy
from research.improve.around.reading import TrueWorld, taken_apart
from research.improve.methods.predicting import transitions
from research.improve.tests.around.conftest import mean_return
from research.improve.tests.conftest import USELESS
from research.improve.values import ABOUT, WEIGHTS, About, StepValue, learn, read_value, write_value
from textgames.frozen_lake.text import read_observation
from textgames.scenarios import SCENARIOS

LAKE = "frozen-lake-level-1"


def decision(place: str, action: str, reward: float, left: int = 2) -> RecordedDecision:
    request = TurnRequest(f"You are at {place}.", legal_actions=("left", "right"), steps_left=left)
    return RecordedDecision({"action": action}, request, None, "", reward, None, reward)


def test_td_joins_what_no_episode_did_and_returns_do_not():
    """From A the way right leads to B, from where the way left pays 1: one episode took the first, one the second."""
    recorded = [[decision("A", "right", 0.0), decision("B", "right", 0.0, 1)]] * 20
    recorded += [[decision("A", "left", 0.0)], [decision("B", "left", 1.0, 1)]] * 20
    first = recorded[0][0].request
    about = {"scenarios": ("hand-made",), "width": 16, "buckets": 256}
    for targets, right in (("mc", 0.0), ("td", 1.0)):
        value = learn(recorded, {**about, "targets": targets}, passes=100)
        assert value.of(first, first.legal_actions) == pytest.approx({"left": 0.0, "right": right}, abs=0.1)


@pytest.mark.slow
def test_search_gains_by_a_learned_value_and_not_by_one_that_has_learnt_nothing(values):
    def success(**options) -> float:
        return mean_return(SearchPolicy(load_agent("random"), **options), 60, LAKE)

    votes = success()
    assert success(rank_by="value", value=values / "learned") >= votes + 0.3
    assert np.mean([success(rank_by="value", value=values / name) for name in USELESS]) <= votes + 0.1


@pytest.mark.slow
def test_the_command_leaves_an_agent_that_plays_better(improve):
    done = improve("value", "random", scenario=LAKE, scored=60, episodes=150, attempts=2, passes=10)
    before, after = done.scores()
    assert after > before + 0.2
    assert done.agent["rank_by"] == "value"


def told(**more):
    return lambda folder: (folder / ABOUT).write_text(json.dumps(json.loads((folder / ABOUT).read_text()) | more))


def linked(folder: Path) -> None:
    (folder / ABOUT).unlink()
    (folder / ABOUT).symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ("link out of", linked),
        ("is unknown here", told(run="rm -r /")),
        ("must be less than", told(width=10**9)),
        ("no weights of this network", told(width=5)),
        ("no weights of this network", lambda folder: (folder / WEIGHTS).write_bytes(b"\x80\x04.")),  # a pickle
        ("No such file", lambda folder: (folder / WEIGHTS).unlink()),
    ],
)
def test_a_folder_of_anybodys_is_data(tmp_path, match, change):
    write_value(StepValue(About(scenarios=(LAKE,), targets="td", decisions=1, width=4, buckets=8)), tmp_path)
    read_value(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=f"{match}.*name the folder `value`"):
        read_value(tmp_path)


def taught_in(*scenarios: str, wanted: int, **options: int) -> list[tuple[TurnRequest, str]]:
    """Transitions with the requests themselves in place of their prompts."""
    found = transitions([SCENARIOS[name] for name in scenarios], wanted, lambda request: request, **options)
    return [(one.prompt, one.response) for one in found]


def test_without_chance_what_is_taught_is_what_the_rules_say():
    taught = taught_in("frozen-lake", wanted=60)
    assert len(taught) == 60
    said = TrueWorld().act([request for request, _ in taught])
    assert [turn.response for turn in said] == [told for _, told in taught]
    assert {taken_apart(request)[1] for request, _ in taught} == {"left", "down", "right", "up"}


def test_with_chance_it_is_as_frequent_as_the_rules_say():
    """On slippery ice an answer is what happens in a third of the cases."""
    dry, as_meant = SCENARIOS["frozen-lake"].game(), []
    for request, told in taught_in("frozen-lake-slippery", wanted=900):
        now, action = taken_apart(request)
        state = dry.transition(read_observation(now.observation), {"player_0": action}, np.random.default_rng(0))[0]
        as_meant.append(told == dry.observe(state, "player_0"))
    assert 0.25 < np.mean(as_meant) < 0.75


def test_scenarios_share_the_transitions_and_parts_have_other_ones():
    both = [request.instructions for request, _ in taught_in("frozen-lake", "frozen-lake-slippery", wanted=31)]
    assert sorted(both.count(rules) for rules in set(both)) == [15, 16]
    first, second = (taught_in("frozen-lake", wanted=20, part=part) for part in (0, 1))
    assert [told for _, told in first] != [told for _, told in second]


@pytest.mark.nightly
def test_a_model_that_knows_nothing_changes_nobody(improve, textbench):
    done = improve("world-model", "tiny", examples=64, rank=0)
    assert (done.changed, done.agent) == (False, {"spec": "tiny"})
    assert load_agent("hf:o/model").prompt_map.mode == "direct"
    found = textbench("inspect", "hf:o/model", "--world-model", "--starts", "3", "--json")
    assert json.loads(found.out)["possible"]["value"] < 0.5
