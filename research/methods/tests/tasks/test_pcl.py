"""PCL: which of the candidates are played, what the critic is taught of them, and both within the trainer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import Batch, Floats
from agents.msgrpo.rollouts import Rollouts
from research.methods.tasks.pcl import PCL
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.played import iteration_of, play

RNG = np.random.default_rng(0)


def value_of(task: EpisodeTask) -> float:
    """Any number that depends on the layout."""
    return float(np.random.default_rng(task.layout_seed).random())


def critic(tasks: Sequence[EpisodeTask]) -> Floats:
    return np.array([value_of(task) for task in tasks])


def iteration(game: str = "frozen-lake", **settings: Any) -> Rollouts:
    return Rollouts(MSGRPOConfig(**settings), [game], 0, Known(), play, critic)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [0.5, 0.9])
def test_the_candidates_nearest_to_the_target_are_played(target):
    made = iteration(groups=5, group_size=3)
    tasks = PCL(candidates=6, target=target).tasks(made)
    offered = [task for part in range(6) for task in made.tasks(part)[::3]]
    nearest = sorted({task.layout_seed for task in offered}, key=lambda layout: abs(
        float(np.random.default_rng(layout).random()) - target))[:5]  # fmt: skip
    assert [task.layout_seed for task in tasks[::3]] == nearest
    for group in range(5):
        assert len({task.layout_seed for task in tasks[3 * group : 3 * group + 3]}) == 1
    plain = made.tasks()
    assert [(task.seed, task.noise) for task in tasks] == [(task.seed, task.noise) for task in plain]
    assert len({each.group for each in PCL().sample(made, RNG)}) == 5


def test_the_critic_learns_the_scaled_mean_of_each_group_at_its_first_prompts():
    """Kuhn poker pays from -2 to 2: returns -1 and 2 are 0.25 and 1, and their mean is 0.625; -2.5 counts as 0."""
    task = EpisodeTask.of("kuhn-poker", 0)
    given = batch(
        trajectory([-1.0], group="a", task=task),
        trajectory([0.0, 2.0], group="a", task=task),
        trajectory([-2.5, 0.0], group="b", task=task),
    )
    targets = PCL().value_targets(given)
    assert list(targets) == ["difficulty"]
    wanted = [[0.625], [0.625, np.nan], [0.0, np.nan]]
    for got, row in zip(targets["difficulty"], wanted, strict=True):
        np.testing.assert_array_equal(got, row)


def test_games_without_bounds_are_refused():
    (task, *_) = iteration("snake", groups=1, group_size=2).tasks()
    with pytest.raises(ConfigError, match=r"snake tells none .return_range.: choose another sampler or another game"):
        PCL().check(task)


def test_without_a_critic_it_says_what_is_missing():
    with pytest.raises(RuntimeError, match="there is no critic"):
        PCL().sample(iteration_of("frozen-lake", groups=1, group_size=2), RNG)


@pytest.mark.slow
def test_the_trainers_critic_learns_what_the_groups_return(tokenizer, make_llama, prompt_file):
    """The policy stands still, and the value of a lake's prompt goes to the mean of its group: here about 0."""
    config = MSGRPOConfig(
        groups=2, group_size=2, iterations=6, response_mode="direct", max_response_tokens=1, learning_rate=1e-9,
        max_steps=2, eval_every=0, samples_every=0, prompt_file=prompt_file, task_sampling="pcl",
        max_prompt_tokens=4000, critic_learning_rate=3e-3,
    )  # fmt: skip
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "frozen-lake", config, quiet=True)
    history = trainer.train()
    assert history[-1]["critic_loss"] < 1e-2
    first: Batch = trainer.rollout()
    values = [each.head_values["difficulty"][0] for each in first.trajectories]
    assert np.abs(values).max() < 0.2
