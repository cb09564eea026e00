"""A learned step value: its targets by hand, folders of strangers, and a search that gains by it and not by another."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents import EpisodeTask, TurnRequest, load_agent, rollout
from benchmark.show import RecordedDecision
from research.improve.around.choosing import SearchPolicy
from research.improve.tests.conftest import USELESS

pytest.importorskip("torch")
LAKE = "frozen-lake-level-1"


def decision(place: str, action: str, reward: float, left: int = 2) -> RecordedDecision:
    request = TurnRequest(f"You are at {place}.", legal_actions=("left", "right"), steps_left=left)
    return RecordedDecision({"action": action}, request, None, "", reward, None, reward)


def success(**options) -> float:
    policy = SearchPolicy(load_agent("random"), **options)
    episodes = rollout(policy, [EpisodeTask.of(LAKE, seed) for seed in range(60)])
    return float(np.mean([one.returns["player_0"] for one in episodes]))


def test_td_joins_what_no_episode_did_and_returns_do_not():
    """From A the way right leads to B, from where the way left pays 1: one episode took the first, one the second."""
    from research.improve.values.learning import learn

    recorded = [[decision("A", "right", 0.0), decision("B", "right", 0.0, 1)]] * 20
    recorded += [[decision("A", "left", 0.0)], [decision("B", "left", 1.0, 1)]] * 20
    first = recorded[0][0].request
    about = {"scenarios": ("hand-made",), "width": 16, "buckets": 256}
    values = {
        targets: learn(recorded, {**about, "targets": targets}, passes=100).of(first, first.legal_actions)
        for targets in ("mc", "td")
    }
    assert values["mc"] == pytest.approx({"left": 0.0, "right": 0.0}, abs=0.1)
    assert values["td"] == pytest.approx({"left": 0.0, "right": 1.0}, abs=0.1)


@pytest.mark.slow
def test_search_gains_by_a_learned_value_and_not_by_one_that_has_learnt_nothing(values):
    votes = success()
    assert success(rank_by="value", value=values / "learned") >= votes + 0.3
    assert np.mean([success(rank_by="value", value=values / name) for name in USELESS]) <= votes + 0.1


@pytest.mark.slow
def test_preferences_by_a_learned_value_are_mostly_right_and_by_a_useless_one_as_often_wrong(values, textbench):
    from research.improve.methods.learning import value_in
    from research.improve.methods.preferring.preferences import pairs_of

    folders = [Path(f"sample-{sample}") for sample in (1, 2, 3)]
    for sample, folder in enumerate(folders, 1):
        play = ("run", "--agent", "random", "--mode", "direct", "--scenario", LAKE, "--episodes", 40, "--out", folder)
        assert textbench(*play, "--seed-offset", 2000, "--resample", sample, "--quiet", "--json").code == 0
    exact = {*pairs_of(folders)}

    def right(value: str) -> float:
        pairs = pairs_of(folders, value_in(str(values / value)))
        known = [one in exact for one in pairs if {one, one._replace(chosen=one.rejected, rejected=one.chosen)} & exact]
        assert len(known) > 15
        return float(np.mean(known))

    assert right("learned") > 0.75
    assert np.mean([*map(right, USELESS)]) < 0.65


@pytest.mark.slow
def test_the_command_leaves_an_agent_that_plays_better(textbench):
    more = ("--set", "episodes=150", "--set", "attempts=2", "--set", "passes=10")
    play = ("--agent", "random", "--scenario", LAKE, "--eval-episodes", 60, "--out", "o", "--quiet")
    done = textbench("improve", "value", *play, *more)
    assert done.code == 0, done.err
    about = json.loads(Path("o/improvement.json").read_text())
    before, after = (about[when][0]["success_rate"]["value"] for when in ("before", "after"))
    assert after > before + 0.2
    assert 'rank_by = "value"' in Path("o/agent.toml").read_text()


def test_a_folder_of_anybodys_is_data(tmp_path):
    from research.improve.values.folder import ABOUT, WEIGHTS, read_value, write_value
    from research.improve.values.network import About, StepValue

    def refused(match: str, change) -> None:
        folder = tmp_path / match.replace(" ", "-")
        write_value(StepValue(About(scenarios=(LAKE,), targets="td", decisions=1, width=4, buckets=8)), folder)
        read_value(folder)
        change(folder)
        with pytest.raises(ValueError, match=f"{match.strip()}.*name the folder `value`"):
            read_value(folder)

    def told(**more):
        return lambda folder: (folder / ABOUT).write_text(json.dumps(json.loads((folder / ABOUT).read_text()) | more))

    def linked(folder: Path) -> None:
        (folder / ABOUT).unlink()
        (folder / ABOUT).symlink_to("/etc/hostname")

    refused("link out of", linked)
    refused("is unknown here", told(run="rm -r /"))
    refused("must be less than", told(width=10**9))
    refused("no weights of this network", told(width=5))
    refused("no weights of this network ", lambda folder: (folder / WEIGHTS).write_bytes(b"\x80\x04."))  # a pickle
    refused("No such file", lambda folder: (folder / WEIGHTS).unlink())
    with pytest.raises(ValueError, match="rank_by = 'value' needs what textbench improve value leaves"):
        SearchPolicy(load_agent("random"), rank_by="value")
    with pytest.raises(ValueError, match="value = 'v' decides nothing if rank_by = 'votes'"):
        SearchPolicy(load_agent("random"), value="v")
