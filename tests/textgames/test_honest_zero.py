"""Nobody who doesn't read scores above 0: a mute player, every constant one, the best blind one, in all scenarios.

A mute player's responses execute uniformly random legal actions, so it is the uniform policy. Where values are
computed, every policy is compared with the best blind one on the same other starts; elsewhere by episodes with the same
draws. So many are tested that chance alone would put some above 0: their p-values are corrected for it.
"""

import math

import numpy as np
import pytest

from benchmark.score.differences import holm
from textgames import SCENARIOS
from textgames.solving import blind
from textgames.solving.blind import Values, blind_play, standard_error
from textgames.yardsticks import FixedPolicy

ALONE = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) == 1]
FRESH = 50_000
"""The first of the starts that are drawn here: neither the search nor the table has seen them."""

EPISODES = 150
"""Played in each scenario whose values aren't computed."""

LEVEL = 0.01


def policies_of(name: str) -> dict[str, FixedPolicy]:
    play = blind_play(SCENARIOS[name])
    assert play is not None
    game = SCENARIOS[name].game()
    constants = [policy for policy in blind.candidates(game) if len(policy) == 1]
    assert len(constants) == len(game.actions) or not game.actions
    return {"blind": play.policy, "mute": {}, **{f"always {next(iter(one))}": one for one in constants}}


def returns_of(name: str, policies: list[FixedPolicy], exact: bool) -> Values:
    """On fresh starts, or in fresh episodes, with the same draws for all; shape (starts, policies)."""
    scenario = SCENARIOS[name]
    sample = blind.computed if exact else blind.played
    return sample(scenario.game(), scenario.horizon, FRESH, 200 if exact else EPISODES)(policies)


def above_zero(name: str) -> dict[str, float]:
    """``{player: p-value}`` of its mean return being above the value that a score of 0 is, one-sided.

    The zero is the table's where it is a number that was estimated, with its own standard error; where it is computed
    for every start, it is what the best blind policy is worth there.
    """
    play = blind_play(SCENARIOS[name])
    assert play is not None
    players = policies_of(name)
    returns = returns_of(name, list(players.values()), play.exact)
    found = {}
    for column, player in enumerate(players):
        if play.exact:
            gains, error = returns[:, column] - returns[:, 0], 0.0
        else:
            gains, error = returns[:, column] - play.value, play.standard_error
        spread = math.hypot(standard_error(gains), error)
        mean = float(np.mean(gains))
        found[f"{name}: {player}"] = 0.5 * math.erfc(mean / spread / 2**0.5) if spread > 1e-12 else float(mean <= 1e-9)
    return found


def check(names: list[str]) -> None:
    p_values = {player: p for name in names for player, p in above_zero(name).items()}
    assert not {player: p for player, p in holm(p_values).items() if p < LEVEL}


@pytest.mark.slow
def test_nobody_in_all_scenarios_scores_above_zero():
    check(ALONE)


def test_the_check_would_find_a_zero_that_is_too_low(monkeypatch):
    """With random play as the zero, as it used to be, constant and mixed play stand out."""
    uniform = {name: blind_play(SCENARIOS[name])._replace(policy={}) for name in ("frozen-lake", "cliff-walking")}  # type: ignore[union-attr]
    monkeypatch.setattr("tests.textgames.test_honest_zero.blind_play", lambda scenario: uniform[scenario.name])
    with pytest.raises(AssertionError, match="cliff-walking: always up"):
        check(["frozen-lake", "cliff-walking"])
