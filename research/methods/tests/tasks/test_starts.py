"""Samplers that begin elsewhere than at the start: exploring starts, trees, segments, branches of visited states."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import textgames
from agents.episode import EpisodeStart, EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Trajectory
from agents.turn import Turn, TurnRequest
from research.methods.tasks.starts import Branches, ExploringStarts, Trees, TruncatedRollouts
from tests.agents.msgrpo.hand_made import trajectory
from tests.agents.msgrpo.runs import Known, iteration_of
from textgames.environments.table import Table
from textgames.scenarios import SCENARIOS

RNG = np.random.default_rng(0)


# ---------------------------------------------------------------- exploring starts


def sampled(game: Any = "frozen-lake", number: int = 0, groups: int = 8, **settings: Any) -> list[EpisodeTask]:
    iteration = iteration_of(game, number=number, groups=groups, group_size=4)
    return ExploringStarts(**settings).tasks(iteration, np.random.default_rng(number))


def test_a_share_of_whole_groups_begins_elsewhere_and_nothing_else_changes():
    plain = iteration_of("frozen-lake", groups=8, group_size=4).tasks()
    for share, expected in ((0.0, 0), (0.25, 2), (0.5, 4), (1.0, 8)):
        tasks = sampled(share=share)
        starts = [tasks[k].start for k in range(0, 32, 4)]
        assert sum(start is not None for start in starts) == expected
        for task, before, group in zip(tasks, plain, np.arange(32) // 4, strict=True):
            assert task.start == starts[group]  # of its whole group
            assert (task.seed, task.layout_seed, task.noise) == (before.seed, before.layout_seed, before.noise)
    assert sampled(share=0.5) == sampled(share=0.5)  # the generator decides all
    assert sampled(share=0.5) != sampled(share=0.5, number=1)


def test_starts_can_be_reached_are_not_over_and_leave_as_many_rounds_as_the_setting_says():
    for counted in (False, True):
        for task in sampled("snake-duel", share=1.0, count_steps=counted):
            env = textgames.parallel_env(task.env_id, **task.kwargs)
            initial = env.game.initial_state(np.random.default_rng(task.layout_seed))
            assert task.start.state != initial
            Table(env.game, env.rules).resume(task.start.state, task.start.elapsed_steps)  # a player is to move
            assert (0 < task.start.elapsed_steps < env.rules.max_steps) == counted
        trajectories = iteration_of("snake-duel").play(sampled("snake-duel", share=1.0, count_steps=counted))
        assert len({each.group for each in trajectories}) <= 2 * 8
        for each in trajectories:
            assert each.states[0] == each.task.start.state
            assert each.steps_left[0] == each.task.kwargs["max_steps"] - each.task.start.elapsed_steps


def test_starts_are_as_far_as_a_walk_goes_and_many_walks_find_them_all():
    """On a lake of 3x3 with one hole there are six places to begin in, besides the start; two of them are beside it."""
    task, rng = EpisodeTask.of("frozen-lake", 0, desc=["SFF", "FFF", "FHG"]), np.random.default_rng(0)
    game = textgames.parallel_env(task.env_id, **task.kwargs).game
    initial = game.initial_state(RNG)
    near = {game.transition(initial, {"player_0": action}, RNG)[0] for action in game.actions} - {initial}

    def found(**settings: Any) -> set[Any]:
        drawn = [ExploringStarts(**settings).start(task, rng) for _ in range(60)]
        return {start.state for start in drawn if start is not None}

    assert found(walk_length=1) == near
    assert len(found(walks=40)) == 6
    assert initial not in found(walks=40)
    one_round = EpisodeTask.of("kuhn-poker", 0, max_steps=1)
    assert ExploringStarts().start(one_round, rng) is None  # there is no other state


def test_the_log_speaks_of_whole_episodes(make_trainer):
    """The trainer plays and learns; returns in its log are those of episodes from the start."""
    config = MSGRPOConfig(
        groups=4, group_size=4, iterations=1, response_mode="direct", max_response_tokens=1, eval_every=0,
        samples_every=0, task_sampling="starts",
        method_settings={"tasks": {"starts": {"share": 0.5, "walk_length": 2}}},
    )  # fmt: skip
    trainer = make_trainer(config)
    batch = trainer.rollout()
    whole = [each for each in batch.trajectories if each.task is not None and each.task.start is None]
    assert len(whole) == 8
    history = trainer.train()
    assert history[0]["return"] == pytest.approx(np.mean([each.returned() for each in whole]))
    assert history[0]["episodes"] == 16


# ---------------------------------------------------------------- trees


LONG = {"max_steps": 12, "groups": 3, "group_size": 8}


class Unsure(Known):
    """Knows the log-probability of its one token, which depends on what it reads."""

    def _answer(self, request: TurnRequest) -> Turn:
        turn = super()._answer(request)
        return replace(turn, response_ids=(1,), logprobs=(-float(sum(map(ord, request.observation)) % 97),))


def grown(game: Any = "taxi", policy: Any = None, seed: int = 0, **settings: Any) -> tuple[Any, list[Trajectory]]:
    iteration = iteration_of(game, policy or Known(share=0.3), **LONG)
    return iteration, Trees(**settings).sample(iteration, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("taxi", {"chains": 2}),
        ("frozen-lake-slippery", {"chains": 2, "rounds": 3}),
        ("snake", {"choose": "entropy", "rounds": 2}),
    ],
)
def test_episodes_are_whole_and_what_they_share_was_played_once(game, settings):
    iteration, trajectories = grown(game, Unsure(share=0.3), **settings)
    assert len(trajectories) == 3 * 8
    for group in _groups(trajectories):
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


def test_every_step_of_a_joined_episode_follows_from_the_one_before():
    for each in grown("taxi", chains=2, rounds=2)[1]:  # whose moves have one outcome each
        env = textgames.parallel_env(each.task.env_id, **each.task.kwargs)
        after = [*each.states[1:], each.end_state]
        for state, action, paid, then in zip(each.states, each.actions, each.rewards.tolist(), after, strict=True):
            ((_, expected, rewards, _),) = env.game.outcomes(state, {each.player: action})
            assert (expected, rewards[each.player]) == (then, paid)


def test_random_branches_keep_the_step_that_was_drawn_and_are_dealt_to_the_trees_evenly():
    for seed in range(3):
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


# ---------------------------------------------------------------- segments


@pytest.mark.parametrize(("game", "window"), [("frozen-lake-slippery", 4), ("snake-poison", 7)])
def test_the_segments_of_an_episode_make_up_one_episode(game, window):
    """Each continues in the state and with the rounds left of the one before; a place begins anew after an end."""
    sampler, limit = TruncatedRollouts(window=window), SCENARIOS[game].horizon
    places = defaultdict[int, list[list[Trajectory]]](list)
    for number in range(12):
        iteration = iteration_of(game, Known(share=0.3), number=number, groups=2, group_size=3)
        played, ends = sampler.sample(iteration, RNG), []
        assert len(played) == 6 == len(iteration.played)
        for place, segment in enumerate(played):
            episodes = places[place]
            before = episodes[-1][-1] if episodes else None
            if before is None or before.terminated or before.steps_left[-1] == 1:
                episodes.append([])
                assert segment.steps_left[0] == limit
            else:
                assert segment.states[0] == before.end_state
                assert segment.steps_left[0] == before.steps_left[-1] - 1
            episodes[-1].append(segment)
            over = segment.terminated or segment.steps_left[-1] == 1
            assert len(segment) == window or (over and len(segment) < window)
            if over:
                ends.append(sum(each.rewards.sum() for each in episodes[-1]))
        assert sampler.metrics["whole_episodes"] == len(ends)
        if ends:
            assert sampler.metrics["whole_return"] == pytest.approx(np.mean(ends))
    finished = [each for own in places.values() for each in own if each[-1].terminated or each[-1].steps_left[-1] == 1]
    assert max(map(len, finished)) > 1
    for episode in finished:
        left = [left for segment in episode for left in segment.steps_left]
        assert left == list(range(limit, limit - len(left), -1))  # every round once


def test_by_hand_the_row_of_five_is_crossed_in_two_iterations():
    """Three steps to the right, then one more that pays 1; V is 0.2, 0.5, 0.7 before the cut, and 0.7 behind it."""
    lake = SCENARIOS["frozen-lake"]
    row = lake._replace(kwargs={**lake.kwargs, "desc": ["SFFFG"], "max_steps": 9})
    sampler = TruncatedRollouts(window=3)

    class Right(Known):
        def _answer(self, request):
            return replace(super()._answer(request), response="<action>right</action>")

    first, second, third = (
        sampler.sample(iteration_of(row, Right(), number=number, groups=1, group_size=2), RNG)[0] for number in range(3)
    )
    assert [each.rewards.tolist() for each in (first, second, third)] == [[0, 0, 0], [1], [0, 0, 0]]
    assert [(each.terminated, each.success) for each in (first, second)] == [(False, False), (True, True)]
    assert [each.steps_left for each in (first, second, third)] == [(9, 8, 7), (6,), (9, 8, 7)]
    values = [replace(first, values=np.array([0.2, 0.5, 0.7])), replace(second, values=np.array([0.9]))]
    credit = METHODS.make("tppo", {"whiten": False}).assign(Batch(values), RNG)
    assert np.concatenate(credit.advantages).tolist() == pytest.approx([0.5, 0.2, 0.0, 0.1])


@pytest.mark.slow
def test_a_model_learns_from_segments(make_trainer):
    """The corridor of four rounds, two at a time: whole episodes return more, and no segment is longer."""
    config = MSGRPOConfig(
        groups=4, group_size=8, episode_sampling="off", iterations=12, response_mode="direct", max_response_tokens=1,
        temperature=1.0, format_penalty=0.5, learning_rate=5e-3, minibatches=2, entropy_coefficient=0.01, eval_every=0,
        samples_every=0, min_valid_share=0, stop_after=0, credit="tppo",
        task_sampling="truncated", critic_learning_rate=3e-3, method_settings={"tasks": {"truncated": {"window": 2}}},
    )  # fmt: skip
    history = make_trainer(config, model={"initializer_range": 0.15}).train()
    assert history[1]["whole_return"] < -0.5
    assert np.mean([metrics["whole_return"] for metrics in history[-3:]]) > 0.8
    assert all(metrics["episode_length"] <= 2 for metrics in history)


@pytest.mark.parametrize("scenario", ["frozen-lake-slippery", "snake-duel"])
def test_every_visited_state_has_so_many_samples(scenario):
    """Counted over episodes and branches, whoever is to move; and every branch is one round from a visited state."""
    iteration = iteration_of(scenario, Known(share=0.2), groups=2, group_size=4, format_penalty=0.25, max_steps=6)
    trajectories = Branches(actions=5).sample(iteration, RNG)
    episodes = [each for each in trajectories if each.begins_a_game]
    branches = [each for each in trajectories if not each.begins_a_game]
    assert branches

    def places(each: Any) -> list[Any]:
        before = each.task.start.elapsed_steps if each.task.start else 0
        return [(each.player, state, before + t) for state, t in zip(each.states, each.rounds, strict=True)]

    visited = Counter(place for each in episodes for place in places(each))
    sampled = Counter(place for each in trajectories for place in places(each))
    assert sampled.keys() == visited.keys()
    assert {max(5, count) for count in visited.values()} == set(sampled.values())
    assert all(len(each) == 1 for each in branches)
    for each in branches:
        assert each.steps_left[0] == 6 - each.task.start.elapsed_steps  # type: ignore[union-attr,operator]
    assert len({each.task.seed for each in branches}) == len({id(each.task) for each in branches})  # type: ignore[union-attr]
    assert {each.begins_a_game for each in iteration.played} == {True, False}  # the log knows what it cost
    fewer = Branches(actions=9, most_states=2).sample(iteration, RNG)
    assert len({each.task.start for each in fewer if not each.begins_a_game}) == 2  # type: ignore[union-attr]


def test_direct_apo_by_hand():
    """Two visits of A and a branch of it; values 5 of B and 1 of C: Q is 0 + 5, 2 (the end) and 1 + 1, their mean 3."""

    class Told:
        tokens = 0
        policy: Any = None

        def returns_from(self, starts: Any, count: int) -> Any:
            self.asked = [(start.state, start.elapsed_steps, count) for start in starts]
            return np.array([[{"B": 5.0, "C": 1.0}[start.state]] * count for start in starts])

    task = EpisodeTask.of("frozen-lake", 0, max_steps=9)
    branch = EpisodeTask("frozen-lake", task.env_id, 1, None, task.kwargs, (), EpisodeStart("A", 0, rounds=1))
    one = trajectory([0.0, 3.0], "AB", horizon=9, task=task)
    other = trajectory([2.0], "A", horizon=9, task=task)
    left = trajectory([1.0], "A", horizon=9, task=branch, group=1, terminated=False, end_state="C")
    rollouts = Told()
    credit = METHODS.make("direct_apo", {"rollouts": 3}).assign(Batch([one, other, left], rollouts), RNG)
    assert [np.asarray(each).tolist() for each in credit.advantages] == [[2.0, 0.0], [-1.0], [-1.0]]
    assert rollouts.asked == [("B", 1, 3), ("C", 1, 3)]
    assert credit.metrics["compared_steps"] == 3 / 4
