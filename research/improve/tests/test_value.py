"""A learned step value: its targets by hand, folders of strangers, and a search that gains by it and not by another."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents import EpisodeTask, TurnRequest, load_agent, request_in, rollout
from benchmark.show import RecordedDecision
from research.improve.around.choosing import SearchPolicy
from textgames import TRAINING_SEEDS, known_scenario, rounds_of_play
from textgames.rounds import PlayedRound

pytest.importorskip("torch")
LAKE = "frozen-lake-level-1"


def decision(place: str, action: str, reward: float, left: int = 2) -> RecordedDecision:
    request = TurnRequest(f"You are at {place}.", legal_actions=("left", "right"), steps_left=left)
    return RecordedDecision({"action": action}, request, None, "", reward, None, reward)


def played(episodes: int) -> list[list[RecordedDecision]]:
    """Random play of small lakes."""
    scenario, found, rng = known_scenario(LAKE), [], np.random.default_rng(0)
    game = scenario.game()

    def decided(one: PlayedRound) -> RecordedDecision:
        request, reward = (
            request_in(game, one.state, "player_0", scenario.horizon - one.played),
            one.rewards["player_0"],
        )
        return RecordedDecision({"action": one.joint_action["player_0"]}, request, None, "", reward, None, reward)

    for seed in TRAINING_SEEDS[:episodes]:
        rounds = rounds_of_play(game, game.initial_state(np.random.default_rng(seed)), scenario.horizon, rng)
        found.append([*map(decided, rounds)])
    return found


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
def test_search_gains_by_a_learned_value_and_not_by_one_that_has_learnt_nothing(tmp_path):
    from research.improve.values.folder import read_value, write_value
    from research.improve.values.learning import learn
    from research.improve.values.network import About, StepValue

    about = {"scenarios": (LAKE,), "targets": "td"}
    write_value(learn(played(300), about), tmp_path / "learned")
    write_value(StepValue(About(decisions=1, **about)), tmp_path / "useless")
    votes = success()
    assert success(rank_by="value", value=tmp_path / "learned") >= votes + 0.3
    assert success(rank_by="value", value=tmp_path / "useless") <= votes + 0.1
    request = played(1)[0][0].request
    assert read_value(tmp_path / "learned").of(request, ("left",)).keys() == {"left"}


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
