"""Gathering and Cleanup: what they share, by hand-worked rounds, and what each of them grows."""

import math
import re

import numpy as np
import pytest

from textgames.social.cleanup import Cleanup
from textgames.social.commons.board import beams_of
from textgames.social.commons.game import BEAM, STEPS
from textgames.social.commons.state import Body, Tally, social_statistics
from textgames.social.gathering import Gathering

UP, RIGHT, DOWN, LEFT = range(4)
RNG = np.random.default_rng(0)


def corridor(**settings):
    """Two players at the ends of a row of seven cells with an apple in its middle."""
    return Gathering(map=("P..A..P",), **settings)


def placed(game, *places, **fields):
    """The first state with the players at ``(cell, heading)``."""
    state = game.initial_state(np.random.default_rng(1))
    homes = game.config.board.starts
    bodies = tuple(Body(cell, heading, homes[n]) for n, (cell, heading) in enumerate(places))
    return state._replace(bodies=bodies, **fields)


def play(game, state, *actions, rng=RNG):
    """A round in which those who are to move do these in turn."""
    return game.transition(state, dict(zip(game.to_move(state), actions, strict=True)), rng)


def test_steps_are_seen_from_the_heading_and_stop_at_walls_and_edges():
    game = Gathering(map=("P#A", "...", "P.."), num_players=2)
    state = placed(game, (4, RIGHT), (6, LEFT))
    ends = {step: play(game, state, step, "stay")[0].bodies[0].cell for step in STEPS}
    assert ends == {"forward": 5, "step right": 7, "backward": 3, "step left": 4}  # the wall is above the middle
    assert play(game, state, "stay", "forward")[0].bodies[1].cell == 6  # the edge
    turned = [play(game, state, turn, "stay")[0].bodies[0].heading for turn in ("turn left", "turn right")]
    assert turned == [UP, DOWN]


def test_a_beam_has_lanes_that_walls_stop_one_by_one():
    board = (".....", ".#...", ".....", "P...A")
    beams = beams_of(board, 3, 3)
    # from the left of the third row to the right: the lane beside it ends at the wall at once
    assert beams[RIGHT][10] == {11, 12, 13, 16, 17, 18}
    assert beams[UP][10] == {5, 0}
    assert beams[DOWN][0] == {5, 10, 15}
    assert beams_of(board, 2, 1)[LEFT][14] == {13, 12}


def test_hits_put_a_player_out_for_whole_rounds_and_then_it_is_back_at_its_start():
    game = corridor(out_rounds=3)
    state = placed(game, (1, RIGHT), (5, LEFT))
    state, rewards, over = play(game, state, BEAM, "stay")
    assert state.bodies[1].hits == 1
    assert game.to_move(state) == game.players
    state, *_ = play(game, state, BEAM, "stay")
    asked = []
    for _ in range(4):
        asked.append(game.to_move(state))
        assert all(game.is_playing(state, player) for player in game.players)
        state, rewards, over = play(game, state, *["stay"] * len(asked[-1]))
        assert rewards == {"player_0": 0.0, "player_1": 0.0}
        assert not over
    assert asked == [("player_0",)] * 3 + [game.players]
    assert (state.bodies[1].cell, state.bodies[1].hits) == (6, 0)
    assert game.metrics(state, "player_1")["rounds_out"] == 3
    assert game.metrics(state, "player_0")["hits"] == 2


def test_a_beam_strikes_where_others_stand_after_moving_and_who_is_put_out_eats_nothing():
    game = Gathering(map=("P.A", "...", "P.."), hits_until_out=1)
    into, *_ = play(game, placed(game, (3, RIGHT), (8, UP)), BEAM, "forward")
    assert into.bodies[1].out == game.config.out_rounds
    away, *_ = play(game, placed(game, (3, RIGHT), (5, UP)), BEAM, "forward")
    assert not away.bodies[1].out
    assert away.tallies[1].total == 1  # it stepped out of the lane, onto the apple
    row = corridor(hits_until_out=1)
    state, rewards, _ = play(row, placed(row, (0, RIGHT), (4, LEFT)), BEAM, "forward")
    assert rewards == {"player_0": 0.0, "player_1": 0.0}
    assert state.apples == (0,)


def test_when_all_are_out_the_rounds_pass_until_the_first_is_back():
    game = corridor(hits_until_out=1, out_rounds=4, refill_rounds=2)
    state, _, over = play(game, placed(game, (1, RIGHT), (5, LEFT), apples=(2,)), BEAM, BEAM)
    assert game.to_move(state) == game.players
    assert not over
    assert state.round == 1 + 4
    assert [tally.missed for tally in state.tallies] == [4, 4]
    assert state.apples == (0,)  # it came back meanwhile
    # peace is (n T - rounds missed) / T = (2 * 5 - 8) / 5
    assert game.metrics(state, "player_0")["peace"] == pytest.approx(0.4)


def test_an_apple_is_back_after_the_refill_rounds():
    game = Gathering(map=("PA.P",), refill_rounds=3)
    state = placed(game, (0, RIGHT), (3, LEFT))
    paid = []
    for action in ("forward", *["stay"] * 7):
        state, rewards, _ = play(game, state, action, "stay")
        paid.append(rewards["player_0"])
    assert paid == [1, 0, 0, 1, 0, 0, 1, 0]


def test_of_two_on_an_apple_one_gets_it_with_equal_chances():
    game = corridor()
    state, joint = placed(game, (2, RIGHT), (4, LEFT)), dict.fromkeys(game.players, "forward")
    paid = sorted((chance, *rewards.values()) for chance, _, rewards, _ in game.outcomes(state, joint))
    assert paid == [(0.5, 0.0, 1.0), (0.5, 1.0, 0.0)]
    assert 150 < sum(game.transition(state, joint, RNG)[1]["player_0"] for _ in range(400)) < 250


def test_growth_falls_evenly_with_the_dirt():
    config = Cleanup(map=("R" * 10 + "AP", "R" * 10 + "AP"), num_players=2).config
    rates = [config.growth(dirty) for dirty in (0, 2, 4, 7, 8, 20)]
    assert rates == pytest.approx([0.05, 0.0375, 0.025, 0.00625, 0.0, 0.0])


def test_dirt_comes_until_the_river_is_depleted_and_apples_grow_at_the_rate():
    game = Cleanup(map=("R" * 10 + "PP" + "A" * 40,), num_players=2, growth_rate=0.2, dirt_chance=0.25)
    rng = np.random.default_rng(4)
    clean = placed(game, (10, UP), (11, UP), apples=(1,) * 40)
    more, grown, rounds = 0, [], 4000
    for _ in range(rounds):
        after, *_ = play(game, clean, "stay", "stay", rng=rng)
        more += len(after.dirt)
        if not after.dirt:
            grown.append(40 - sum(after.apples))
    assert abs(more / rounds - 0.25) < 4 * math.sqrt(0.25 * 0.75 / rounds)
    assert abs(np.mean(grown) - 40 * 0.2) < 4 * math.sqrt(40 * 0.2 * 0.8 / len(grown))
    depleted = clean._replace(dirt=(0, 1, 2, 3))
    for _ in range(200):
        after, *_ = play(game, depleted, "stay", "stay", rng=rng)
        assert after.dirt == (0, 1, 2, 3)
        assert after.apples == (1,) * 40


def test_nothing_grows_and_no_dirt_comes_where_a_player_stands():
    game = Cleanup(map=("RRRAPP",), num_players=2, growth_rate=1.0, dirt_chance=1.0)
    state = placed(game, (3, UP), (0, UP), apples=(1,))
    seen = {(after := play(game, state, "stay", "stay", rng=np.random.default_rng(n))[0]).dirt for n in range(50)}
    assert seen == {(1,), (2,)}
    assert after.apples == (1,)
    assert play(game, placed(game, (4, UP), (0, UP), apples=(1,)), "stay", "stay")[0].bodies[0].cell == 4


def test_cleaning_reaches_as_far_as_the_beam_and_costs_as_beams_and_hits_do():
    game = Cleanup(map=("DDDDDDDDPP..A",), num_players=2, dirt_chance=0.0)
    state, rewards, _ = play(game, placed(game, (8, LEFT), (9, LEFT)), "clean", "clean")
    # five cells ahead each: 3 to 7, and 4 to 8 of which the eighth is no river
    assert state.dirt == (0, 1, 2)
    assert rewards == {"player_0": -1.0, "player_1": -1.0}
    assert [tally.cleaned for tally in state.tallies] == [5, 4]
    assert game.metrics(state, "player_0")["cells_cleaned"] == 5
    game = Cleanup(map=("RPPA",), num_players=2)
    _, rewards, _ = play(game, placed(game, (1, RIGHT), (2, RIGHT)), BEAM, "stay")
    assert rewards == {"player_0": -1.0, "player_1": -5.0}


def test_cooldowns_take_actions_away_for_as_many_rounds():
    game = Cleanup(preset="melting-pot")
    state, *_ = play(game, game.initial_state(np.random.default_rng(0)), "clean", *["stay"] * 6)
    waits = []
    for _ in range(4):
        waits.append("clean" in game.legal_actions(state, "player_0"))
        if not waits[-1]:
            with pytest.raises(ValueError, match="player_0 needs a legal action"):
                play(game, state, "clean", *["stay"] * 6)
        state, *_ = play(game, state, *["stay"] * 7)
    assert waits == [False, False, True, True]


def test_no_dirt_comes_before_its_first_round():
    game, rng = Cleanup(preset="melting-pot"), np.random.default_rng(0)
    state = game.initial_state(rng)._replace(dirt=())
    for _ in range(90):
        state, *_ = play(game, state, *["stay"] * 7, rng=rng)
        assert state.round > 50 or state.dirt == ()
    assert 8 <= len(state.dirt) <= 32


def test_statistics_by_hand():
    tallies = [Tally(3.0, 3, 0 + 4 + 8), Tally(1.0, 1, 6, missed=5), Tally(0.0)]
    found = social_statistics(tallies, 10)
    # sum_ij |R_i - R_j| = 2 * (2 + 3 + 1) = 12
    assert found == pytest.approx(
        {"efficiency": 0.4, "equality": 1 - 12 / (2 * 3 * 4), "sustainability": (4 + 6) / 2, "peace": 2.5}
    )
    for returns in ((0.0, 0.0), (-3.0, 1.0)):  # nothing was gained
        assert set(social_statistics([Tally(total) for total in returns], 10)) <= {
            "efficiency",
            "peace",
            "sustainability",
        }
    assert social_statistics([Tally(), Tally()], 0) == {}


@pytest.mark.slow
@pytest.mark.parametrize("game", [Gathering(), Cleanup()], ids=["gathering", "cleanup"])
def test_the_observation_tells_what_would_happen(game):
    """Ways, aims and threats, as read from the text, against the rules."""
    rng = np.random.default_rng(7)
    state, aimed, threats = game.initial_state(rng), 0, 0
    names = game.config.board.names
    for _ in range(400):
        movers = game.to_move(state)
        stay = dict.fromkeys(movers, "stay")
        for player in movers:
            text, number = game.observe(state, player), game.players.index(player)
            for way in STEPS:
                after, *_ = game.transition(state, {**stay, player: way}, np.random.default_rng(0))
                cell = after.bodies[number].cell
                blocked = cell == state.bodies[number].cell
                assert (f"{way} is blocked" if blocked else f"{way} to {names[cell]}") in text
            after, *_ = game.transition(state, {**stay, player: BEAM}, np.random.default_rng(0))
            struck = [game.players[other] for other in after.deeds[number].struck]
            aimed += bool(struck)
            assert f"it would hit {' and '.join(struck) or 'nobody'}." in text
            for other in set(movers) - {player}:
                after, *_ = game.transition(state, {**stay, other: BEAM}, np.random.default_rng(0))
                hit = number in after.deeds[game.players.index(other)].struck
                threats += hit
                assert (re.search(rf"^{other}: at .*; its beam would hit you\.$", text, re.M) is not None) == hit
            if "clean" in game.actions:
                after, *_ = game.transition(state, {**stay, player: "clean"}, np.random.default_rng(0))
                cells = after.deeds[number].cleaned
                assert f"it would remove dirt from {cells} cell{'s' * (cells != 1)}." in text
        joint = {player: game.sample_action(state, player, rng) for player in movers}
        state, *_ = game.transition(state, joint, rng)
    assert aimed > 10
    assert threats > 10
