"""Playing episodes again: what happened in every round, and why an episode ended; and who sits where at tables."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from agents import Episode, EpisodeTask, Step, Turn, load_agent, rollout
from benchmark.runs.plan import tables
from benchmark.runs.record import recorded
from benchmark.runs.replay import ReplayError, ending, replay, replay_if_unchanged
from tests.benchmark.helpers import change_manifest, refused
from textgames import SCENARIOS
from textgames.scenarios import Scenario
from textgames.twins import vocabulary_digest


def lake(rows, horizon=10, **settings):
    return Scenario("lake", "TextFrozenLake-v0", {"desc": rows, "invalid_action": "default", **settings}, horizon, 0)


def played(scenario, *responses, seed=0):
    """The record and the replay of an episode with one player."""
    steps = tuple(Step(k, "player_0", "", Turn(text), "", True, None, 0.0) for k, text in enumerate(responses))
    replayed = replay(Episode(scenario.name, seed, None, {"player_0": "a"}, steps, {}, {}, False, False), scenario)
    return replayed.episode, replayed


@pytest.mark.parametrize(
    ("responses", "told", "end"),
    [
        (("right", "down"), ["", "fell into a hole"], "ended by the rules: fell into a hole"),
        (("down", "down", "right", "right"), ["", "", "", "reached the goal"], "ended by the rules: reached the goal"),
        (("up", "left"), ["bumped into the edge"] * 2, "was stopped before its end"),
        (("nonsense", "up", "up", "up", "up"), ["bumped into the edge"] * 5, "reached the step limit"),
    ],
)
def test_every_step_says_what_happened_and_the_end_says_why(responses, told, end):
    record, replayed = played(lake(["SFF", "FHF", "FFG"], horizon=5), *responses)
    assert [*map(replayed.happened, replayed.steps)] == told
    assert ending(record, replayed) == end
    assert [step.out for step in replayed.steps] == [False] * (len(told) - 1) + [replayed.episode.terminated]


def test_players_are_named_where_there_are_several():
    """Snakes that move at random die of many causes; each death is told of the player who died it, in its last step."""
    scenario, ends = SCENARIOS["snake-duel"], set()
    for episode in rollout(load_agent("random"), [EpisodeTask.of(scenario, seed) for seed in range(12)]):
        replayed = replay(episode, scenario)
        for player in episode.agents:
            *steps, last = [step for step in replayed.steps if step.player == player]
            assert not any(step.out for step in steps)
            if last.out:
                fate = replayed.happened(last)
                assert fate.startswith(("hit the wall", "ran into", "head to head with snake"))
                assert f"{player} {fate} in round {last.index + 1}" in ending(episode, replayed)
                ends.add(fate)
    assert len(ends) > 1
    limit = replace(episode, terminated=False, truncated=True)
    assert ending(limit, replayed).startswith("reached the step limit; ")


def test_other_ends_have_nothing_to_tell():
    scenario = lake(["SFF", "FHF", "FFG"], invalid_action="terminate")
    record, replayed = played(scenario, "nonsense")
    assert (replayed.steps[0].action, replayed.happened(replayed.steps[0]), replayed.steps[0].out) == ("", "", True)
    assert ending(record, replayed) == ending(record, None) == "ended by the rules"  # None: the game has changed
    assert ending(replace(record, error="round 2: no answer"), None) == "broke off with an error"


def test_responses_that_do_not_fit_leave_nothing_behind():
    """The environment is shared by all replays of a scenario; a broken record must not spoil it for the next one."""
    scenario = lake(["SFF", "FHF", "FFG"])
    for _ in range(2):
        with pytest.raises(ReplayError, match="the game was over before it"):
            played(scenario, "right", "down", "down")
        with pytest.raises(ReplayError, match="there is no episode with seed -1"):
            played(scenario, "right", seed=-1)
        assert played(scenario, "right", "down")[1].episode.terminated


def test_a_game_that_has_changed_is_noticed():
    (episode,) = rollout(load_agent("greedy"), [EpisodeTask.of("frozen-lake", 10_001)])
    record = recorded(episode)
    assert replay_if_unchanged(record, SCENARIOS["frozen-lake"]) is not None
    assert replay_if_unchanged(record, SCENARIOS["frozen-lake-slippery"]) is None
    assert replay_if_unchanged(replace(record, steps=record.steps * 2), SCENARIOS["frozen-lake"]) is None


@pytest.mark.slow
def test_a_twin_that_is_told_in_other_words_by_now_is_refused_with_a_sentence(textbench):
    play = ("run", "--agent", "random", "--scenario", "nim", "--twins", 1, "--episodes", 3, "--quiet")
    for out in ("then", "now"):
        assert textbench(*play, "--out", out).code == 0
    scenarios = change_manifest("then", lambda m: None)["scenarios"]
    words = scenarios["nim-twin-1"]["vocabulary"]
    assert words == vocabulary_digest(SCENARIOS["nim"].game(), 1)
    assert "vocabulary" not in scenarios["nim"]
    change_manifest("then", lambda m: m["scenarios"]["nim-twin-1"].update(vocabulary="0123456789abcdef"))
    shown = textbench("replay", "then", "--scenario", "nim-twin-1", "--plain").out
    assert f"nim-twin-1 was told with the vocabulary 0123456789abcdef, which is {words} in this version" in shown
    again = textbench("resume", "then", "--episodes", 4)
    assert (again.code, "take the version that played it, or play it anew" in again.err) == (2, True)
    assert textbench("leaderboard", "then").code == 0  # the scores are what they were
    refused(textbench("leaderboard", "then", "now"), "defines another scenario under the name 'nim-twin-1'")


def test_two_seats_are_a_round_robin_in_both_orders():
    assert tables("abc", 2) == [tuple(pair) for pair in ("ab", "ac", "ba", "bc", "ca", "cb")]
    # alone or among oneself
    assert tables("abc", 1) == [("a",), ("b",), ("c",)]
    assert tables("a", 2) == [("a", "a")]
    assert tables("a", 5) == [tuple("aaaaa")]


@pytest.mark.parametrize(("seats", "count"), [(3, 2), (4, 6), (7, 3)])
def test_every_agent_sits_in_every_seat_equally_often_against_everyone(seats, count):
    agents = "abcdef"[:count]
    made = tables(agents, seats)
    assert len(made) == len(set(made)) == count**2
    for a, b in combinations(agents, 2):
        met = [table for table in made if set(table) == {a, b}]
        assert [Counter(seat) for seat in zip(*met, strict=True)] == [Counter({a: 1, b: 1})] * seats
        # swapping the two changes nothing: no seat, no neighbour, no team is anybody's privilege
        assert {tuple(b if name == a else a for name in table) for table in met} == set(met)
    assert [table for table in made if len(set(table)) == 1] == [(agent,) * seats for agent in agents]
