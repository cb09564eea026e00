"""Trees: what their episodes share, that only the rest was played, where branches begin, and what is refused."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import textgames
from agents.msgrpo import ConfigError
from agents.msgrpo.credit.batch import Trajectory
from agents.msgrpo.tasks import SAMPLERS
from agents.turn import Turn, TurnRequest
from research.methods.tasks.tree import Trees
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.played import iteration_of

LONG = {"max_steps": 12, "groups": 3, "group_size": 8}


class Unsure(Known):
    """Knows the log-probability of its one token, which depends on what it reads."""

    def _answer(self, request: TurnRequest) -> Turn:
        turn = super()._answer(request)
        return replace(turn, response_ids=(1,), logprobs=(-float(sum(map(ord, request.observation)) % 97),))


def grown(game: Any = "taxi", policy: Any = None, seed: int = 0, **settings: Any) -> tuple[Any, list[Trajectory]]:
    iteration = iteration_of(game, policy or Known(share=0.3), **LONG)
    return iteration, Trees(**settings).sample(iteration, np.random.default_rng(seed))


@pytest.mark.parametrize("game", ["taxi", "frozen-lake-slippery", "snake"])
@pytest.mark.parametrize("settings", [{"chains": 2}, {"chains": 2, "rounds": 3}, {"choose": "entropy", "rounds": 2}])
def test_episodes_are_whole_and_what_they_share_was_played_once(game, settings):
    iteration, trajectories = grown(game, Unsure(share=0.3), **settings)
    assert len(trajectories) == 3 * 8
    groups = [trajectories[k : k + 8] for k in range(0, 24, 8)]
    for group in groups:
        assert len({each.group for each in group}) == 1
        assert len({each.tree for each in group}) == settings.get("chains", 4)
        assert len({each.states[0] for each in group}) == 1
        told: dict[Any, Any] = {}
        for each in group:
            assert each.begins_a_game
            assert each.rounds == tuple(range(len(each)))
            assert each.steps_left == tuple(range(12, 12 - len(each), -1))
            assert len(set(each.nodes)) == len(each)
            for t, node in enumerate(each.nodes):
                step = (t, each.states[t], each.actions[t], each.rewards[t], each.nodes[:t], each.tree)
                assert told.setdefault(node, step) == step
    assert len({each.group for each in trajectories}) == 3
    assert sum(map(len, iteration.played)) < sum(map(len, trajectories))
    assert sum(map(len, iteration.played)) == len({node for each in trajectories for node in each.nodes})
    assert sum(each.begins_a_game for each in iteration.played) == 3 * settings.get("chains", 4)


@pytest.mark.parametrize("game", ["taxi", "sliding-puzzle"])  # whose moves have one outcome each
def test_every_step_of_a_joined_episode_follows_from_the_one_before(game):
    for each in grown(game, chains=2, rounds=2)[1]:
        env = textgames.parallel_env(each.task.env_id, **each.task.kwargs)
        after = [*each.states[1:], each.end_state]
        for state, action, paid, then in zip(each.states, each.actions, each.rewards.tolist(), after, strict=True):
            ((_, expected, rewards, _),) = env.game.outcomes(state, {each.player: action})
            assert (expected, rewards[each.player]) == (then, paid)


def test_random_branches_keep_the_step_that_was_drawn_and_are_dealt_to_the_trees_evenly():
    for seed in range(5):
        for group in _groups(grown(chains=3, seed=seed)[1]):
            sizes = sorted(sum(each.tree == tree for each in group) for tree in {each.tree for each in group})
            assert sizes == [2, 3, 3]
            for each in group[3:]:
                assert each.nodes[0] == (each.tree, 0)  # at least the first step is the chain's


def test_the_least_sure_steps_are_taken_again_and_crowding_spreads_them():
    for group in _groups(grown("taxi", Unsure(share=0.3), choose="entropy", chains=2, crowding=0.0)[1]):
        chains, branches = group[:2], group[2:]
        sure = {each.nodes[t]: each.surprise(t) for each in chains for t in range(len(each) - 1)}
        kept = [sum(node[0] == each.tree for node in each.nodes) for each in branches]
        taken = [(each.tree, count) for each, count in zip(branches, kept, strict=True)]  # the step after those kept
        assert sorted(sure[each] for each in taken) == sorted(sure.values())[-6:]
    spread = grown("taxi", Unsure(share=0.3), choose="entropy", chains=1, rounds=7, crowding=1e6)[1]
    for group in _groups(spread):
        steps = {(each.nodes[:t], node) for each in group for t, node in enumerate(each.nodes)}
        assert max(Counter(before for before, _ in steps).values()) == 2  # as long as there are places with one sample


def test_an_episode_of_one_step_is_taken_again():
    for choose in ("random", "entropy"):
        iteration = iteration_of("blackjack", Unsure(), groups=2, group_size=4, max_steps=1)
        trajectories = Trees(chains=1, choose=choose).sample(iteration, np.random.default_rng(0))
        assert [len(each) for each in trajectories] == [1] * 8
        assert len({each.nodes for each in trajectories}) == 8


def test_what_cannot_be_branched_is_refused():
    sampler: Any = SAMPLERS.make("tree")
    with pytest.raises(ConfigError, match="kuhn-poker, which has several players"):
        sampler.check(iteration_of("kuhn-poker").tasks()[0])
    with pytest.raises(ConfigError, match=r"chains = 9 can't be used with group_size = 8; accepted: 1 to 8"):
        grown(chains=9)
    with pytest.raises(ConfigError, match=r"doesn't: set choose = 'random' in \[tasks.tree\]"):
        grown(choose="entropy")
    remembers = Known()
    remembers.history_turns = 2  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="history_turns = 2"):
        grown(policy=remembers)


def _groups(trajectories: list[Trajectory]) -> list[list[Trajectory]]:
    return [trajectories[k : k + 8] for k in range(0, len(trajectories), 8)]
