"""``search(AGENT)`` gains by a value that is true, gains nothing by one that is useless, and tells what it costs."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import textgames
from agents import load_agent
from agents.episode import EpisodeTask
from agents.load import check_agent
from agents.loop.rollout import rollout
from agents.turn import Policy, Turn, TurnRequest, Usage, request_in
from research.improve.around.choosing import SearchPolicy


def returns(policy: Policy, scenario: str = "frozen-lake", episodes: int = 60) -> np.ndarray:
    tasks = [EpisodeTask.of(scenario, seed) for seed in range(episodes)]
    played = rollout(policy, tasks)
    return np.array([episode.returns["player_0"] for episode in played])


def useless(request: TurnRequest, actions: Sequence[str]) -> Mapping[str, float]:
    """Values that have nothing to do with the game."""
    return dict(zip(actions, np.random.default_rng(request.seed).random(len(actions)), strict=True))


@pytest.mark.slow
def test_true_values_gain_and_useless_ones_do_not():
    alone, random = returns(load_agent("random")), load_agent("random")
    # the best move is among eight random ones nine times in ten, and a way takes six
    assert returns(SearchPolicy(random, rank_by="exact")).mean() >= alone.mean() + 0.5
    assert returns(SearchPolicy(random, rank_by="rollouts")).mean() >= alone.mean() + 0.3
    for rank in (useless, "votes"):
        assert returns(SearchPolicy(random, rank_by=rank)).mean() <= alone.mean() + 0.1


def test_more_proposals_lose_less():
    random = load_agent("random")
    means = [returns(SearchPolicy(random, proposals=n, rank_by="exact")).mean() for n in (1, 2, 8)]
    assert means == sorted(means)
    assert means[-1] > means[0] + 0.5


def test_one_proposal_is_what_the_player_inside_answers():
    model = load_agent("tiny")
    game = textgames.game_of("TextFrozenLake-v0")
    rng = np.random.default_rng(0)
    requests = [request_in(game, game.initial_state(rng), "player_0", 6, seed=(3, at)) for at in range(4)]
    ours, theirs = SearchPolicy(model, proposals=1, rank_by="exact").act(requests), model.act(requests)
    assert [turn.response for turn in ours] == [turn.response for turn in theirs]
    assert [turn.usage for turn in ours] == [turn.usage for turn in theirs]
    several = SearchPolicy(model, proposals=3).act(requests)
    assert [turn.usage.prompt_tokens for turn in several] == [3 * turn.usage.prompt_tokens for turn in theirs]


class Says:
    """Answers from a list, in order."""

    name = "says"

    def __init__(self, *answers: Turn) -> None:
        self.answers = list(answers)

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [self.answers.pop(0) for _ in requests]


def said(response: str, **fields: Any) -> Turn:
    return Turn(response, usage=Usage(10, 2), **fields)


def chosen(*answers: Turn, actions: tuple[str, ...] = ("left", "right"), **options: Any) -> Turn:
    policy = SearchPolicy(Says(*answers), proposals=len(answers), **options)
    (turn,) = policy.act([TurnRequest("where", legal_actions=actions, seed=(1,))])
    return turn


def test_votes_count_what_can_be_read():
    left, right = said("<action>left</action>"), said("<action>right</action>")
    assert chosen(left, right, right).response == right.response
    assert chosen(left, right).response == left.response  # of equals the first
    assert chosen(said("?"), said("??"), right).response == right.response
    assert chosen(said("?"), said("??")).response == "?"
    assert chosen(left, right, right).usage == Usage(30, 6)
    free = chosen(said("<action>12</action>"), said("<action>7</action>"), said("<action> 7 </action>"), actions=())
    assert free.response == "<action>7</action>"


def test_what_the_response_cache_knew_is_not_paid_for_again():
    fresh, known = said("<action>left</action>"), Turn("<action>right</action>", usage=Usage(10, 2, cached=True))
    turn = chosen(fresh, known, known)
    assert turn.usage[:2] == (30, 6)
    assert turn.paid == Usage(10, 2)
    assert chosen(known, known).paid[:2] == (0, 0)
    again = said("<action>left</action>", discarded=Usage(7, 1))
    assert chosen(again, known).paid == Usage(17, 3)


def test_a_server_is_asked_for_all_proposals_at_once():
    class Served(Says):
        in_flight = most = 0

        async def act_async(self, request: TurnRequest | str) -> Turn:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            await asyncio.sleep(0.01)
            self.in_flight -= 1
            return self.answers.pop(0)

    inner = Served(*[said(f"<action>{name}</action>") for name in ("left", "right", "right")])
    policy = SearchPolicy(inner, proposals=3)
    assert policy.served
    turn = asyncio.run(policy.act_async(TurnRequest("where", legal_actions=("left", "right"))))
    assert (turn.response, inner.most) == ("<action>right</action>", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proposals": 0}, "proposals is a whole number from 1 to 10,000, got 0"),
        ({"rank_by": "exat"}, "did you mean 'exact'"),
        ({"rollouts": -1}, "rollouts is a whole number"),
        ({"proposals": 10**8}, "from 1 to 10,000, got 100000000"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_loaded(options, message):
    with pytest.raises(ValueError, match=message):
        check_agent("search(hf:no/such-model)", **options)


@pytest.mark.parametrize(
    ("scenario", "rank_by", "message"),
    [
        ("snake", "exact", "has no exact values"),
        ("snake-duel", "rollouts", "can't be played on"),
        ("mastermind", "exact", "doesn't list its actions"),
        ("word-guess", "votes", ""),
        ("snake", "rollouts", ""),
        ("frozen-lake", "rollouts", ""),
    ],
)
def test_games_that_cant_be_ranked_so_are_refused(scenario, rank_by, message):
    policy = SearchPolicy(load_agent("random"), rank_by=rank_by)
    game = textgames.known_scenario(scenario).game()
    if message:
        with pytest.raises(ValueError, match=message):
            policy.check_game(game)
    else:
        policy.check_game(game)


@pytest.mark.slow
def test_a_twin_is_searched_by_the_state_of_its_game():
    random = load_agent("random")
    assert returns(SearchPolicy(random, rank_by="exact"), "frozen-lake-twin-1", 20).mean() >= 0.4
    assert returns(SearchPolicy(random, rank_by="rollouts"), "frozen-lake-twin-1", 20).mean() >= 0.2
