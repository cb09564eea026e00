"""Games of turns in the loop: who is asked, and which decision every reward belongs to."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import textgames
from agents.baselines.random import RandomPlayer
from agents.episode import Episode, EpisodeTask
from agents.loop.rollout import rollout
from tests.agents.helpers import Listener
from textgames import TSMG


class Hall(NamedTuple):
    turn: int = 0
    out: bool = False


class Team(TSMG[Hall]):
    """One of three players a turn. ``player_2`` is paid before its first turn, ``player_0`` after its only one, when it
    is out, and all at the end."""

    players = ("player_0", "player_1", "player_2")
    actions = ("go", "stay")
    one_at_a_time = True

    def initial_state(self, rng: Any) -> Hall:
        return Hall()

    def to_move(self, state: Hall) -> tuple[str, ...]:
        order = ("player_0", "player_1", "player_2", "player_1", "player_2")
        return (order[min(state.turn, 4)],)

    def is_playing(self, state: Hall, player: str) -> bool:
        return not (state.out and player == "player_0")

    def transition(self, state: Hall, joint_action: Mapping[str, str], rng: Any) -> Any:
        (player,) = joint_action
        turn = state.turn + 1
        pay = {"player_0": 0.5 * (turn == 2), "player_1": float(player == "player_1"), "player_2": 0.25 * (turn == 1)}
        if turn == 5:
            pay = {"player_0": 4.0, "player_1": 8.0, "player_2": 16.0}
        return Hall(turn, turn >= 3), pay, turn == 5

    def observe(self, state: Hall, player: str) -> str:
        return f"{player}, turn {state.turn}"

    def instructions(self, player: str) -> str:
        return "go or stay"

    def metrics(self, state: Hall, player: str) -> Mapping[str, float]:
        return {"turns": state.turn}


class Sudden(Team):
    """All at once; ``player_0`` is out after the first round and is paid in the last."""

    to_move = TSMG.to_move  # as of a game that says nothing of turns

    def transition(self, state: Hall, joint_action: Mapping[str, str], rng: Any) -> Any:
        turn = state.turn + 1
        return Hall(turn, True), {"player_0": 4.0 * (turn == 3), "player_1": 1.0, "player_2": 0.0}, turn == 3


textgames.register("TurnsTeam-v0", Team, max_steps=9)
textgames.register("TurnsSudden-v0", Sudden, max_steps=9)


def episode_of(game: str) -> tuple[Episode, Listener]:
    policy = Listener("<action>stay</action>")
    (episode,) = rollout(policy, [EpisodeTask.of(game, 3)])
    return episode, policy


def test_only_those_who_are_to_move_are_asked_and_rewards_belong_to_the_last_decision_before_them():
    episode, policy = episode_of("TurnsTeam-v0")
    assert [request.player for request in policy.asked] == ["player_0", "player_1", "player_2", "player_1", "player_2"]
    assert [request.steps_left for request in policy.asked] == [9, 8, 7, 6, 5]
    assert [(step.index, step.player) for step in episode.steps] == [
        (index, request.player) for index, request in enumerate(policy.asked)
    ]
    assert all(request.observation.startswith(request.player) for request in policy.asked)
    rewards = {player: [step.reward for step in episode.steps_of(player)] for player in episode.agents}
    assert rewards == {
        "player_0": [4.5],  # between its turns, and late
        "player_1": [1.0, 9.0],
        "player_2": [0.25, 16.0],  # the first was paid before it had a turn
    }
    assert episode.returns == {"player_0": 4.5, "player_1": 10.0, "player_2": 16.25}
    assert episode.metrics == {player: {"turns": 5.0} for player in Team.players}
    assert episode.terminated


def test_who_is_out_is_paid_late_where_nobody_said_that_it_would_be():
    episode, policy = episode_of("TurnsSudden-v0")
    assert len(policy.asked) == 3 + 2 + 2
    assert episode.returns == {"player_0": 4.0, "player_1": 3.0, "player_2": 0.0}
    assert [step.reward for step in episode.steps_of("player_0")] == [4.0]


def test_random_players_say_what_the_game_has_for_them_where_only_some_actions_are_listed():
    """In Werewolf votes are names of a list and speeches are not: a name is no random speech."""
    (episode,) = rollout(RandomPlayer(), [EpisodeTask.of("werewolf-7", 600_000)])
    said = {step.action for step in episode.steps if "turn to speak" in step.observation}
    assert all(step.valid for step in episode.steps)
    assert said
    assert not said & {"nobody", *episode.agents}


def test_a_game_that_is_registered_again_is_played_anew():
    """As in a notebook, with the same settings: what is kept of the old one is of no use."""
    for words in ("old", "new"):
        game = type("Again", (Team,), {"instructions": lambda self, player, words=words: words})
        textgames.register("TurnsAgain-v0", game, max_steps=9)
        _, policy = episode_of("TurnsAgain-v0")
        assert {request.instructions for request in policy.asked} == {words}
