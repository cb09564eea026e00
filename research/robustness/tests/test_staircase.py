"""The simulated players are what they are said to be."""

import numpy as np
import pytest

from research.robustness.ladders import staircase as simulation
from research.robustness.ladders.staircase import LEVELS, every_level, figures, players, slipping, staircase


@pytest.fixture(autouse=True)
def _few_lakes(monkeypatch):
    monkeypatch.setattr(simulation, "LAKES", 100)


@pytest.mark.slow
def test_players_are_at_their_levels():
    """Half of the headroom is kept between the levels beside it, on average over many episodes."""
    rng = np.random.default_rng(0)
    for player in players():
        kept = {level: np.mean([player.play(level, rng) for _ in range(600)]) for level in LEVELS}
        below = [kept[level] for level in LEVELS if level <= player.level - 1.2]
        above = [kept[level] for level in LEVELS if level >= player.level + 1.2]
        assert all(share > 0.35 for share in below), (player.name, kept)
        assert all(share < 0.65 for share in above), (player.name, kept)


@pytest.mark.slow
def test_the_lakes_chances_give_what_slipping_costs():
    """At a level whose tolerance is the share of slips, half is kept."""
    (player,) = slipping((0.233,))  # that of level 4
    rng = np.random.default_rng(1)
    kept = np.mean([player.play(4, rng) for _ in range(4000)])
    assert abs(player.level - 4) < 0.1
    assert abs(kept - 0.5) < 0.06


def test_both_ways_play_as_many_episodes():
    player = next(iter(players()))
    counted = []

    def counting(level: int, rng: np.random.Generator) -> float:
        counted.append(level)
        return player.play(level, rng)

    for way in (staircase, every_level):
        counted.clear()
        way(player._replace(play=counting), 40, np.random.default_rng(0))
        assert len(counted) == 40
        assert set(counted) == set(LEVELS)


def test_figures_are_of_errors_on_the_ladder():
    player = next(iter(players()))
    found = [staircase(player, 30, np.random.default_rng(seed)) for seed in range(4)]
    told = figures(found, player.level)
    assert told["error"] >= abs(told["bias"])
    assert 0 <= told["coverage"] <= 1
