"""The reference players of the social games: they read text alone, play legally, and do what they are named for."""

import numpy as np
import pytest

from agents import request_in
from agents.baselines.games.social import CleanupPlayer, GatheringPlayer, WerewolfPlayer
from textgames.social.cleanup import Cleanup
from textgames.social.commons.state import Body
from textgames.social.gathering import Gathering
from textgames.social.werewolf import Werewolf
from textgames.social.werewolf.rules import DOCTOR, SEER, VILLAGER, WOLF, Phase, WerewolfState


def asked(game, state, player="player_0", steps_left=20):
    return request_in(game, state, player, steps_left, (1,))


def gathering(*bodies, map=("P..A..P",), **fields):
    game = Gathering(map=map)
    state = game.initial_state(np.random.default_rng(0))
    return game, state._replace(bodies=tuple(Body(cell, heading, cell) for cell, heading in bodies), **fields)


def test_the_way_to_an_apple_is_walked_and_only_the_planner_leaves_one_to_who_is_as_near():
    for heading, step in enumerate(("step right", "forward", "step left", "backward")):
        game, state = gathering((0, heading), (6, 0))
        assert GatheringPlayer(game).plan(asked(game, state)).action == step
    game, state = gathering((5, 1), (1, 1), map=("P..A.P.A",))  # two steps to each apple, and to one for the other too
    assert GatheringPlayer(game).greedy(asked(game, state)).action == "backward"
    assert GatheringPlayer(game).plan(asked(game, state)).action == "forward"


def test_values_count_what_the_walk_collects_and_an_apple_that_comes_back_soon_is_worth_waiting_for():
    game, state = gathering((1, 1), (6, 0))
    player = GatheringPlayer(game)
    assert not player.exact
    values = player.values(asked(game, state, steps_left=2))
    assert values == {name: float(name == "forward") for name in game.actions}
    assert player.values(asked(game, state, steps_left=1)) == dict.fromkeys(game.actions, 0.0)
    # eaten in the second round, and again eight rounds later
    assert player.values(asked(game, state, steps_left=10))["forward"] == 2
    game, state = gathering((3, 0), (6, 0), apples=(2,))
    assert player.greedy(asked(game, state)).action == "stay"


def test_only_the_first_player_of_the_planner_cleans():
    game = Cleanup(map=("DDDDPP..A",), num_players=2)
    state = game.initial_state(np.random.default_rng(0))
    state = state._replace(bodies=(Body(4, 3, 4), Body(5, 3, 5)), apples=(0,))
    player = CleanupPlayer(game)
    assert player.plan(asked(game, state)).action == "clean"
    assert player.plan(asked(game, state, "player_1")).action == "backward"
    assert player.greedy(asked(game, state)).action == "backward"
    turned = state._replace(bodies=(Body(4, 2, 4), Body(5, 3, 5)))
    assert player.plan(asked(game, turned)).action == "turn right"
    values = player.values(asked(game, state, steps_left=1))
    assert (values["clean"], values["stay"]) == (-1.0, 0.0)


def village(*said):
    """The vote of day 1 after these words of players 0, 1, ...; player 6 was killed."""
    game = Werewolf()
    roles = (SEER, WOLF, VILLAGER, WOLF, DOCTOR, VILLAGER, VILLAGER)
    state = WerewolfState(roles, (True,) * 7, Phase.NIGHT)
    joint = {"player_1": "player_6", "player_0": "player_1", "player_4": "player_4"}
    state = game.transition(state, joint, np.random.default_rng(0))[0]
    for words in said:
        speaker = game.to_move(state)[0]
        state = game.transition(state, {speaker: words}, np.random.default_rng(0))[0]
    return game, state


QUIET = "I have nothing to say."
TOLD = "I am the seer, and player_1 is a wolf."


def test_the_seer_tells_whom_it_saw_and_the_village_follows():
    game, state = village()
    player = WerewolfPlayer(game)
    assert player.plan(asked(game, state)).action == TOLD
    assert player.greedy(asked(game, state)).action == QUIET
    game, state = village(TOLD, *[QUIET] * 5)
    votes = {name: player.plan(asked(game, state, name)).action for name in game.to_move(state)}
    assert votes == {
        **dict.fromkeys(["player_0", "player_2", "player_4", "player_5"], "player_1"),
        **dict.fromkeys(["player_1", "player_3"], "player_0"),
    }


def test_who_is_accused_wrongly_votes_against_the_accuser_and_a_known_wolf_is_not_believed():
    game, state = village(QUIET, QUIET, "I am the seer, and player_5 is a wolf.", *[QUIET] * 3)
    player = WerewolfPlayer(game)
    assert player.plan(asked(game, state, "player_5")).action == "player_2"
    assert player.plan(asked(game, state, "player_4")).action == "player_5"
    # the seer was killed in the night; a wolf lies, and is voted out by those who know better
    game, state = village(QUIET, "I am the seer, and player_2 is a wolf.", *[QUIET] * 4)
    votes = {**dict.fromkeys(game.to_move(state), "player_1"), "player_1": "player_2"}
    state = game.transition(state, votes, np.random.default_rng(0))[0]
    assert not state.alive[1]
    assert player.plan(asked(game, state, "player_4")).action != "player_1"
    assert "player_1 (a wolf)" in game.observe(state, "player_4")


def test_a_village_without_a_seer_that_speaks_votes_for_nobody_or_for_the_first():
    game, state = village(*[QUIET] * 6)
    player = WerewolfPlayer(game)
    assert player.plan(asked(game, state, "player_2")).action == "nobody"  # six are alive
    assert player.plan(asked(game, state, "player_1")).action == "player_0"  # wolves do vote
    five = state._replace(alive=(False, *state.alive[1:]))
    votes = {name: player.plan(asked(game, five, name)).action for name in game.to_move(five)}
    assert votes["player_4"] == votes["player_5"] == "player_1"
    assert votes["player_1"] == "player_2"


def test_the_doctor_protects_and_the_wolves_attack_whoever_said_it_is_the_seer():
    game, state = village(TOLD, *[QUIET] * 5)
    state = game.transition(state, dict.fromkeys(game.to_move(state), "nobody"), np.random.default_rng(0))[0]
    player = WerewolfPlayer(game)
    assert player.plan(asked(game, state, "player_4")).action == "player_0"
    assert player.plan(asked(game, state, "player_1")).action == "player_0"
    with pytest.raises(ValueError, match="fixed rules"):
        player.values(asked(game, state))
