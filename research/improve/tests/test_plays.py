"""Play on training seeds: agents are compared on what all of them have scored."""

from pathlib import Path

import pytest

from agents import Episode
from research.improve.plays import PLAYER, Play, means_in_common


def played(**returns: float) -> Play:
    records = [
        Episode("guess-number", int(seed[1:]), None, {"player_0": PLAYER}, (), {"player_0": value}, {}, True, False)
        for seed, value in returns.items()
    ]
    return Play(Path("play"), {}, tuple(records))


def test_who_missed_the_hard_seed_is_not_better_for_it():
    good, broken_off = played(s1=-3, s2=-3, s3=-9), played(s1=-4, s2=-4)
    assert good.mean < broken_off.mean
    assert means_in_common([good, broken_off]) == pytest.approx([-3, -4])
    assert means_in_common([good, played(s9=0)]) == [0, 0]  # nothing is known
