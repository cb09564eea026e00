"""GHPO: who plays again, with which hints in which rounds, what is learnt from, and who is refused."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import pytest

from agents.baselines.random import RandomPlayer
from agents.baselines.search import PlannerPlayer
from agents.loop.rollout import rollout
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import Batch, Trajectory
from agents.msgrpo.rollouts import Rollouts
from agents.msgrpo.tasks import Hint
from agents.turn import Turn, TurnRequest
from research.methods.tasks.ghpo import GHPO
from tests.agents.msgrpo.played import iteration_of, play

RNG = np.random.default_rng(0)


class Obedient(RandomPlayer):
    """Does what it is told, and is of no use without."""

    name = "obedient"

    def __init__(self, hint: Hint | None = None) -> None:
        super().__init__()
        self.hint = hint
        self.told: list[tuple[TurnRequest, str]] = []

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        turns = []
        for request in requests:
            assert isinstance(request, TurnRequest)
            hint = self.hint(request) if self.hint is not None else ""
            self.told.append((request, hint))
            turns.append(Turn(f"<action>{hint.split()[-1].strip('.') if hint else '?'}</action>"))
        return turns


class Hinted(Rollouts):
    """Rollouts whose players need no prompts to be told hints."""

    def __init__(self, made: Rollouts) -> None:
        vars(self).update(vars(made))
        self.levels: list[Obedient] = []

    def play(self, tasks: Any, hint: Hint | None = None) -> list[Trajectory]:
        self.levels.append(Obedient(hint))
        self.policy = self.levels[-1]  # type: ignore[assignment]
        return super().play(tasks)


def test_the_first_quarter_then_half_then_three_quarters_of_the_solution():
    """A player that does nothing unless it is told fails until the end: four plays, and each tells so many rounds."""
    iteration = Hinted(iteration_of("frozen-lake", groups=3, group_size=2))
    tasks = iteration.tasks()
    lengths = {
        e.layout_seed: len(e.steps) for e in rollout(PlannerPlayer(), [*{t.layout_seed: t for t in tasks}.values()])
    }
    trajectories = GHPO().sample(iteration, RNG)
    assert len(iteration.levels) == 4
    assert not any(each.success for each in trajectories)
    assert not any(hint for _, hint in iteration.levels[0].told)
    layout_of = {task.seed: task.layout_seed for task in tasks}
    planner = PlannerPlayer()
    for fraction, level in zip((0.25, 0.5, 0.75), iteration.levels[1:], strict=True):
        for request, hint in level.told:
            most = ceil(fraction * lengths[layout_of[request.seed[0]]])
            action = planner.choose(request).action
            assert hint == (f"The best action here is {action}." if request.seed[-2] < most else "")
    assert [each.task.seed for each in trajectories] == [task.seed for task in tasks]  # type: ignore[union-attr]
    assert {each.task.noise for each in trajectories} == {(0, 0, 1, 2, 3)}  # type: ignore[union-attr]
    assert len(iteration.played) == 4 * 6


def test_groups_with_a_success_are_left_alone_and_a_rerun_takes_the_place_of_its_group():
    """Of six groups of twelve random players on the ice of a slippery lake some cross it."""
    iteration = iteration_of("frozen-lake-slippery", groups=6, group_size=12)
    plain = Batch(iteration.play(iteration.tasks()))
    won = {label for label, members in plain.groups.items() if any(plain.trajectories[i].success for i in members)}
    assert 0 < len(won) < 6
    calls: list[list[Any]] = []

    class Watching(Rollouts):
        def play(self, tasks: Any, hint: Hint | None = None) -> list[Trajectory]:
            calls.append([(task.scenario, task.layout_seed, "player_0") for task in tasks])
            return super().play(tasks)  # the random player reads no prompts

    again = Watching(iteration.config, ["frozen-lake-slippery"], 0, RandomPlayer(), play)  # type: ignore[arg-type]
    batch = Batch(GHPO(most_reruns=1).sample(again, RNG))
    assert list(batch.groups) == list(plain.groups)
    assert all(len(members) == 12 for members in batch.groups.values())
    assert set(calls[1]) == set(plain.groups) - won
    for label, members in batch.groups.items():
        noises = {batch.trajectories[index].task.noise for index in members}  # type: ignore[union-attr]
        assert noises == {(0, 0) if label in won else (0, 0, 1)}


@pytest.mark.slow
def test_a_model_learns_from_the_hinted_prompts(tokenizer, make_llama, prompt_file):
    config = MSGRPOConfig(
        groups=1, group_size=2, iterations=1, response_mode="direct", max_response_tokens=1, learning_rate=1e-3,
        max_steps=3, eval_every=0, samples_every=0, prompt_file=prompt_file, task_sampling="ghpo", temperature=1.0,
        max_prompt_tokens=4000, method_settings={"tasks": {"ghpo": {"most_reruns": 2, "hint": "green {action}"}}},
    )  # fmt: skip
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "frozen-lake", config, quiet=True)
    batch = trainer.rollout()
    assert all(each.hinted for each in batch.trajectories)
    first = [tokenizer.decode(each.prompt_ids[0]) for each in batch.trajectories]
    assert all(text.count("green") == 1 for text in first)
    assert not any("green" in tokenizer.decode(each.prompt_ids[0]) for each in batch.played[:2])
    assert [each.hinted for each in batch.played] == [False] * 2 + [True] * 4
    (metrics,) = trainer.train()
    assert metrics["return"] == pytest.approx(np.mean([each.returned() for each in batch.played[:2]]))


@pytest.mark.parametrize(
    ("game", "why"),
    [
        ("kuhn-poker", "it has several players"),
        ("TestButtons-v0", "greedy and planner can't play Buttons"),
        ("bandit", "it counts no episode as a success"),
    ],
)
def test_who_is_refused(game, why):
    (task, *_) = iteration_of(game, groups=1, group_size=2).tasks()
    with pytest.raises(ConfigError, match=f"task_sampling = 'ghpo' can't be used with {game}: {why}"):
        GHPO().check(task)


@pytest.mark.parametrize("methods", [{"task_sampling": "ghpo"}, {"task_sampling": "pcl"}, {"credit": "igpo"}])
def test_a_run_refuses_its_game_before_anything_is_made_or_played(methods):
    config = MSGRPOConfig(groups=1, group_size=2, **methods)
    game = "snake" if methods == {"task_sampling": "pcl"} else "TestButtons-v0"
    with pytest.raises(ConfigError, match=rf"(task_sampling|credit) = '\w+' .*{game}"):
        MSGRPOTrainer(None, None, game, config, quiet=True)  # neither model nor tokenizer is looked at
