"""An episode begun in a visited state is the rest of the episode that visited it, but for the noise."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.baselines.random import RandomPlayer
from agents.episode import Episode, EpisodeStart, EpisodeTask
from agents.loop.live import environment_of
from agents.loop.rollout import rollout
from textgames.environments.table import Table

GAMES = [
    "frozen-lake-slippery",
    "snake-duel",  # players who leave
    "kuhn-poker",  # turns
    "werewolf-5",  # turns, players who are out and stay to be paid late
    "gathering-duel",  # moves at once
    "blackjack",
]


def table_of(task: EpisodeTask) -> Table:
    env = environment_of(task)
    return Table(env.game, env.rules)


def played(tasks: Sequence[EpisodeTask]) -> list[Episode]:
    by_seed = {episode.seed: episode for episode in rollout(RandomPlayer(), tasks)}
    return [by_seed[task.seed] for task in tasks]


def names_of(info: Any) -> Any:
    return {player: (told["valid"], told["action"], told["legal_actions"], told["success"]) for player, told in info}


@pytest.mark.parametrize("invalid_action", ["default", "random"])
@pytest.mark.parametrize("scenario", GAMES)
def test_with_the_same_noise_the_rest_is_the_same(scenario, invalid_action):
    for seed in range(4):
        task = EpisodeTask.of(scenario, seed, invalid_action=invalid_action, format_penalty=0.5)
        (episode,) = played([task])
        rounds = episode.steps[-1].index
        cut = (seed * rounds) // 4  # from the first round to one near the end
        first = next(step for step in episode.steps if step.index == cut)
        limit = task.kwargs["max_steps"]
        assert first.steps_left == limit - cut
        original, begun = table_of(task), table_of(task)
        original.reset(seed)
        for index in range(cut):
            original.play({s.player: s.turn.response for s in episode.steps if s.index == index})
        assert original.state == first.state
        begun.resume(first.state, cut, seed=99)
        begun.rng.bit_generator.state = original.snapshot().rng_state
        assert begun.agents == original.agents
        for player in original.agents:
            assert begun.first_info(player)["legal_actions"] == original.legal_actions(player)
        while original.agents:
            assert begun.asked == original.asked
            assert begun.elapsed == original.elapsed
            answers = dict.fromkeys(original.asked, "<action>?</action>")
            if original.elapsed <= rounds:
                told = [s for s in episode.steps if s.index == original.elapsed]
                # now and then something unreadable, so that its penalty and what replaces it are compared as well
                answers |= {s.player: s.turn.response for s in told if (s.index + seed) % 4}
            ours, theirs = begun.play(answers), original.play(answers)
            assert ours[:3] == theirs[:3]
            assert names_of(ours[3].items()) == names_of(theirs[3].items())
            assert begun.state == original.state
            assert begun.agents == original.agents
        assert begun.elapsed == original.elapsed


def test_who_is_out_is_not_asked_again_even_where_no_round_counts_as_played():
    episode = next(
        episode
        for episode in played([EpisodeTask.of("snake-duel", seed) for seed in range(12)])
        if len(episode.steps_of("player_0")) != len(episode.steps_of("player_1"))
    )
    last = episode.steps[-1]
    for elapsed in (0, last.index):
        (again,) = played([replace(EpisodeTask.of("snake-duel", 5), start=EpisodeStart(last.state, elapsed))])
        assert {step.player for step in again.steps} == {last.player}


def test_seeds_decide_a_restarted_episode():
    task = EpisodeTask.of("frozen-lake-slippery", 0)
    (episode,) = played([task])
    made = [replace(task, seed=seed, start=EpisodeStart(episode.steps[0].state, 0)) for seed in (1, 2)]
    first, other = played(made)
    assert [step.state for step in played(made)[0].steps] == [step.state for step in first.steps]
    assert [step.state for step in first.steps] != [step.state for step in other.steps]


def test_where_no_episode_can_begin():
    table = table_of(EpisodeTask("lake", "TextFrozenLake-v0", 0, kwargs={"desc": ["SG", "FF"], "max_steps": 100}))
    table.reset(0)
    for elapsed in (-1, 100, 101):
        with pytest.raises(ValueError, match="below max_steps = 100"):
            table.resume(table.state, elapsed)
    table.play({"player_0": "right"})
    with pytest.raises(ValueError, match="no player is to move"):
        table.resume(table.state, 1)
