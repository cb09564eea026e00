"""Sentences of the rules that were misread, held to what the games do."""

import numpy as np

import textgames
from textgames import SCENARIOS


def test_delays_may_be_different_every_day() -> None:
    told = SCENARIOS["online-iid"].game().instructions("player_0")
    assert "a delay of 0 to 10 minutes, which may be different every day" in told
    assert "another one each day" not in told


def test_the_noise_of_an_arm_is_exactly_what_is_said() -> None:
    game = textgames.game_of("TextContextualBandit-v0", noise=0.2)
    assert "and exactly 0.2 more or 0.2 less, with equal chances" in game.instructions("player_0")
    rng = np.random.default_rng(0)
    state = game.initial_state(rng)
    paid = {round(game.transition(state, {"player_0": game.actions[0]}, rng)[1]["player_0"], 9) for _ in range(50)}
    assert len(paid) == 2
    assert round(max(paid) - min(paid), 6) == 0.4


def test_equal_probabilities_are_called_equal() -> None:
    slippery = textgames.game_of("TextFrozenLake-v0", is_slippery=True)
    told = slippery.instructions("player_0")
    assert "with probability 1/3, and in each of the two directions perpendicular to it with probability 1/3." in told
    assert "0.333" not in told
    likely = textgames.game_of("TextFrozenLake-v0", is_slippery=True, success_rate=0.8).instructions("player_0")
    assert "with probability 0.8, and in each of the two directions perpendicular to it with probability 0.1." in likely


def test_cleanup_says_that_its_river_may_begin_dirtier_than_it_becomes() -> None:
    game = textgames.game_of("TextCleanup-v0")
    told = game.instructions("player_0")
    assert "while less than 40% of the river is dirty, one more cell of it becomes dirty" in told
    assert "The river may begin with more dirt than that." in told
    state = game.initial_state(np.random.default_rng(0))
    assert "cells are dirty, 45%" in game.observe(state, "player_0")
