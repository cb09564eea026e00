"""Exploring starts: which states groups begin in, that they are whole groups, and what the run's log makes of them."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import textgames
from agents.episode import EpisodeTask
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from research.methods.tasks.states import ExploringStarts
from tests.agents.msgrpo.played import iteration_of
from textgames.environments.table import Table

LAKE = ["SFF", "FFF", "FHG"]


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


@pytest.mark.slow
def test_one_walk_draws_by_reach_and_many_walks_draw_evenly():
    """On a lake of 3x3 with one hole there are six places to begin in, besides the start."""
    task = EpisodeTask.of("frozen-lake", 0, desc=LAKE)
    initial = textgames.parallel_env(task.env_id, **task.kwargs).game.initial_state(np.random.default_rng(0))
    rng, counts = np.random.default_rng(5), {}
    for walks in (1, 40):
        method, drawn = ExploringStarts(share=1.0, walks=walks), dict[Any, int]()
        for _ in range(240):
            start = method.start(task, rng)
            drawn[start.state] = drawn.get(start.state, 0) + 1
        counts[walks] = drawn
    assert initial not in counts[1] | counts[40]
    assert len(counts[40]) == 6  # 9 cells without the start, the hole and the goal
    assert stats.chisquare(list(counts[40].values())).pvalue > 1e-3
    assert stats.chisquare([counts[1].get(state, 0) for state in counts[40]]).pvalue < 1e-3  # near the start more often


def test_the_longest_walk_bounds_how_far_away_a_start_is():
    task = EpisodeTask.of("frozen-lake", 0, desc=LAKE)  # from its start there is ice on the right and below
    game = textgames.parallel_env(task.env_id, **task.kwargs).game
    initial = game.initial_state(np.random.default_rng(0))
    near = {game.transition(initial, {"player_0": a}, np.random.default_rng(0))[0] for a in game.actions} - {initial}
    rng = np.random.default_rng(0)
    found = {start.state for _ in range(40) if (start := ExploringStarts(walk_length=1).start(task, rng)) is not None}
    assert found == near


def test_a_game_of_one_round_has_no_other_start():
    task = EpisodeTask.of("kuhn-poker", 0, max_steps=1)
    assert ExploringStarts().start(task, np.random.default_rng(0)) is None


def test_the_log_speaks_of_whole_episodes(tokenizer, make_llama, prompt_file):
    """The trainer plays and learns; returns in its log are those of episodes from the start."""
    config = MSGRPOConfig(
        groups=4, group_size=4, iterations=2, response_mode="direct", max_response_tokens=1, minibatches=1,
        learning_rate=1e-3, eval_every=0, samples_every=0, task_sampling="starts", prompt_file=prompt_file,
        method_settings={"tasks": {"starts": {"share": 0.5, "walk_length": 2}}},
    )  # fmt: skip
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    batch = trainer.rollout()
    whole = [each for each in batch.trajectories if each.task is not None and each.task.start is None]
    assert len(whole) == 8
    history = trainer.train()
    assert history[0]["return"] == pytest.approx(np.mean([each.returned() for each in whole]))
    assert history[0]["episodes"] == 16
