"""Nim: its rules, and its exact values against Bouton's rule."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from textgames.solving.minimax import Minimax
from textgames.strategy.nim import Nim, NimState


def mover_wins(heaps: Sequence[int], misere: bool) -> bool:
    """Whether the player who is to move wins with perfect play: Bouton's rule."""
    balance = 0
    for size in heaps:
        balance ^= size
    return (balance != 0) != (misere and all(size <= 1 for size in heaps))


@pytest.mark.parametrize("misere", [False, True])
def test_values_follow_boutons_rule(misere):
    game = Nim(heaps=(4, 3, 5), misere=misere)
    yardstick = Minimax(game)
    for heaps in itertools.product(range(5), range(4), range(6)):
        if any(heaps):
            expected = 1.0 if mover_wins(heaps, misere) else -1.0
            for mover, player in enumerate(game.players):
                assert yardstick.value(NimState(heaps, mover), None, player) == expected


@pytest.mark.parametrize(("misere", "winner"), [(False, "player_1"), (True, "player_0")])
def test_the_last_counter_decides(misere, winner):
    game, rng = Nim(heaps=(1, 2), misere=misere), np.random.default_rng(0)
    state = game.initial_state(rng)
    state, _, over = game.transition(state, {"player_0": "take 1 from a"}, rng)
    assert not over
    assert game.legal_actions(state, "player_1") == ("take 1 from b", "take 2 from b")
    state, rewards, over = game.transition(state, {"player_1": "take 2 from b"}, rng)
    assert over
    assert rewards[winner] == 1.0
    assert game.observe(state, winner).endswith("you have won.")


def test_a_drawing_for_spectators():
    assert Nim().describe(NimState((3, 0, 2), 1)) == "a |||\nb\nc ||\nplayer_1 is to move"
