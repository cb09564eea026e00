"""The line of an episode: nothing lost, what counts apart from what was measured."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.episode import Episode, Step
from agents.turn import Turn, Usage
from benchmark.runs.record import (
    canonical_line,
    opened_line,
    paid_tokens,
    parse_line,
    recorded,
    sealed_line,
    to_line,
    unscored,
)


def episode(response="<action>up</action>", seconds=0.5, seed=7, error=None, **turn):
    steps = tuple(
        Step(i, "player_0", f"board {i}", Turn(response, seconds=seconds, **turn), "up", True, None, 0.5)
        for i in range(2)
    )
    me, paid, won = {"player_0": "me"}, {"player_0": 1.0}, {"player_0": True}
    return recorded(Episode("frozen-lake", seed, None, me, steps, paid, won, True, False, error, seconds))


def as_json(episode):
    return json.loads(to_line(episode))


def read_again(episode):
    """The episode without what a line doesn't hold."""
    steps = tuple(replace(step, observation="", turn=replace(step.turn, seconds=0.0)) for step in episode.steps)
    return replace(episode, steps=steps, seconds=0.0)


@given(st.text(), st.text())
@settings(max_examples=100, deadline=None)
def test_any_response_survives_the_disk(response, error):
    played = episode(response, error=error)
    line = to_line(played)
    assert line.count(b"\n") == 1
    assert parse_line(line) == read_again(played)
    assert to_line(parse_line(line)) == line


def test_what_was_measured_doesnt_count_and_everything_else_does():
    slow, fast = episode(seconds=3.0), episode(seconds=0.1)
    assert to_line(slow) != to_line(fast)
    assert canonical_line(slow) == canonical_line(fast)
    for other in (episode("other"), episode(usage=Usage(5, 2)), episode(finish_reason="length")):
        assert canonical_line(other) != canonical_line(fast)
    cached = episode(usage=Usage(5, 2, cached=True))
    assert canonical_line(episode(usage=Usage(5, 2))) == canonical_line(cached)
    assert cached.measured["cached_tokens"] == [10, 4]


def test_what_was_paid_is_known_of_records_of_every_version_and_of_those_that_cannot_be_kept():
    record = episode(usage=Usage(5, 2))
    steps = tuple(replace(step, player=player) for player in ("player_0", "player_1") for step in record.steps)
    record = replace(record, agents={"player_0": "m", "player_1": "n"}, steps=steps)
    free = {"cached_tokens": [12, 4]}
    assert paid_tokens(replace(record, measured=free)) == {"player_0": (0, 0, 0), "player_1": (10, 4, 0)}
    told = free | {"cached_by_player": {"player_1": [10, 4]}, "discarded_tokens": {"player_0": [3, 10**10, 1]}}
    paid = paid_tokens(replace(record, measured=told))
    assert paid == {"player_0": (13, 10**10 + 4, 1), "player_1": (0, 0, 0)}
    kept = unscored(replace(record, measured=told), "too many tokens")
    assert paid_tokens(parse_line(to_line(kept))) == {"player_0": (13, 10**9, 1), "player_1": (0, 0, 0)}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"[1, 2]\n", r"it must be an object, got \[1, 2\]"),
        (b'{"schema_version": 99}\n', "schema_version must be 1, got 99"),
        (b'{"schema_version": 1, "scenario": 5}\n', "scenario must be a valid string, got 5"),
        (b"[" * 100_000 + b"\n", "not JSON"),
    ],
)
def test_foreign_lines_are_named(line, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse_line(line)


ODD = {
    "seed": (1.5, -1, 2**53),
    "verified": (True,),
    "agents": ({},),
    "returns": ({}, {"player_0": 1, "player_1": 1}, {"player_0": "1"}, {"player_0": True}, {"player_0": 10**400}),
    "successes": ({"player_0": None},),
    "measured": ({"seconds": float("nan")}, {"seconds": 1e308}, {"cached_tokens": [0]}, {"dollars": 5}),
    "steps": ([5], [{"round": 0}]),
}
ODD_IN_A_STEP = {
    "player": ("player_9", []),
    "reward": ("1", float("nan")),
    "tokens": (5, [1], [1, -2], [True, 2], [10**400, 0]),
    "valid": (1,),
    "verified": (True,),
}


@pytest.mark.parametrize(
    "change",
    [
        *({name: value} for name, values in ODD.items() for value in values),
        *(
            {"steps": [{**as_json(episode())["steps"][0], name: value}]}
            for name, values in ODD_IN_A_STEP.items()
            for value in values
        ),
    ],
)
def test_whatever_is_read_has_the_shape_of_an_episode(change):
    (name,) = change
    with pytest.raises(ValueError, match=rf"^{name}[\w.]* (must be|must have|is missing|is unknown here)") as refusal:
        parse_line(json.dumps({**as_json(episode()), **change}).encode())
    assert len(str(refusal.value)) < 300


def test_no_changed_bit_of_a_line_goes_unnoticed():
    line = sealed_line(to_line(episode(usage=Usage(12, 3))))
    record = parse_line(line)
    for place in range(len(line) - 1):  # without its newline, it is the unfinished line of a process that was killed
        for bit in range(8):
            changed = line[:place] + bytes([line[place] ^ 1 << bit]) + line[place + 1 :]
            with pytest.raises(ValueError):
                parse_line(changed)
    assert parse_line(line) == record


def test_lines_without_a_checksum_and_lines_that_were_written_anew_are_read():
    line = to_line(episode())
    assert opened_line(sealed_line(line)) == line
    assert opened_line(line) == line
    assert parse_line(line) == parse_line(sealed_line(line)) == read_again(episode())
    assert parse_line(json.dumps(json.loads(sealed_line(line))).encode()) == read_again(episode())
    empty = to_line(replace(episode(), measured={}))
    assert parse_line(sealed_line(empty)) == replace(read_again(episode()), measured={})
    assert opened_line(sealed_line(empty)) == empty


@pytest.mark.parametrize("field", ["served_by", "reasoning"])
def test_half_a_character_is_kept_in_responses_alone(field):
    line = to_line(episode("\udc80\ud800", **{field: "a\udc80b"}))
    found = parse_line(sealed_line(line))
    assert found.steps[0].turn.response == "\udc80\ud800"
    kept = found.measured["served_by"]["player_0"][0] if field == "served_by" else found.steps[0].turn.reasoning
    assert kept == "a\ufffdb"
    with pytest.raises(ValueError, match="seed must be a valid integer"):
        parse_line(line.replace(b'"seed":7', b'"seed":"7"'))


def test_an_episode_that_cant_be_kept_is_one_without_a_score():
    record = episode(usage=Usage(10**12, 3))
    with pytest.raises(ValueError, match=r"steps\.0\.tokens\.0 must be less than or equal to 1000000000") as refusal:
        parse_line(to_line(record))
    kept = parse_line(to_line(unscored(record, str(refusal.value))))
    assert kept.error.startswith("the episode can't be kept: steps.0.tokens.0 must be")
    assert (kept.seed, kept.agents) == (record.seed, record.agents)
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_line(replace(record, steps=(replace(record.steps[0], reward=float("nan")),)))
