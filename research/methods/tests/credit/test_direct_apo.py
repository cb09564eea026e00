"""Direct advantage optimisation: branches of visited states, advantages among them, its loss, and all together."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeStart, EpisodeTask
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.surrogates.tokens import Tokens
from research.methods.tasks.states import Branches
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.hand_made import trajectory
from tests.agents.msgrpo.played import iteration_of

LAKE = {"desc": ["SFF", "FHF", "FFG"], "is_slippery": True, "max_steps": 5, "format_penalty": 0.25}
RNG = np.random.default_rng(0)


def lake(policy: Any, scenario: str = "frozen-lake-slippery", **settings: Any) -> Any:
    return iteration_of(scenario, policy, groups=2, group_size=4, format_penalty=0.25, **settings)


@pytest.mark.parametrize("scenario", ["frozen-lake-slippery", "kuhn-poker", "snake-duel"])
def test_every_visited_state_has_so_many_samples(scenario):
    """Counted over episodes and branches, whoever is to move; and every branch is one round from a visited state."""
    iteration = lake(Known(share=0.2), scenario, max_steps=6)
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


def test_most_states_bounds_the_branches():
    trajectories = Branches(actions=9, most_states=2).sample(lake(Known(), max_steps=6), RNG)
    assert len({each.group for each in trajectories if not each.begins_a_game}) == 2


def test_an_episode_that_is_left_is_truncated_and_says_where():
    task = EpisodeTask.of("frozen-lake", 0, **{**LAKE, "is_slippery": False})
    iteration = iteration_of("frozen-lake", Known(share=1.0))
    (whole,) = iteration.play([task])
    for rounds in (1, 2):
        start = EpisodeStart(whole.states[1], 1, rounds=rounds)
        (left,) = iteration.play([EpisodeTask("lake", task.env_id, 3, None, task.kwargs, (), start)])
        assert len(left) == rounds
        assert left.states == whole.states[1 : 1 + rounds]
        assert left.steps_left == whole.steps_left[1 : 1 + rounds]  # as many as if it went on
        if len(whole) > 1 + rounds:
            assert left.end_state == whole.states[1 + rounds]
            assert not left.terminated
    ended = EpisodeStart(whole.states[-1], len(whole) - 1, rounds=9)
    (rest,) = iteration.play([EpisodeTask("lake", task.env_id, 3, None, task.kwargs, (), ended)])
    assert len(rest) == 1
    assert rest.terminated == whole.terminated


def test_by_hand():
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


def test_its_loss_and_gradient_are_those_of_the_formula():
    rng = np.random.default_rng(1)
    lengths, beta = [3, 1, 4], 0.05
    logprobs = torch.tensor(rng.normal(size=8), requires_grad=True)
    reference, advantages = torch.tensor(rng.normal(size=8)), [0.3, -0.2, 0.0]
    spread = torch.tensor(np.repeat(advantages, lengths))
    loss = SURROGATES.make("direct_apo", {"beta": beta})
    terms = loss.terms(Tokens(logprobs, reference * 9, spread, torch.tensor(lengths), reference))
    first, wanted, gradient = 0, [], []
    for length, advantage in zip(lengths, advantages, strict=True):
        here = slice(first, first + length)
        off = advantage / beta - float((logprobs.detach()[here] - reference[here]).sum())
        wanted.append(off**2 / 2)
        gradient += [-off] * length
        first += length
    sums = [float(part.sum()) for part in torch.split(terms.detach(), lengths)]
    np.testing.assert_allclose(sums, wanted, rtol=1e-12)
    (got,) = torch.autograd.grad(terms.sum(), [logprobs])
    np.testing.assert_allclose(got.numpy(), gradient, rtol=1e-12)
    assert loss.needs == {"reference"}


@pytest.mark.slow
def test_all_of_it_together_makes_good_actions_likelier(tokenizer, make_llama, prompt_file):
    """Offline, as in the paper: one iteration, many passes over what the model at the start did."""
    config = MSGRPOConfig(
        groups=8, group_size=4, iterations=1, response_mode="direct", max_response_tokens=1, temperature=1.0,
        format_penalty=0.5, learning_rate=3e-3, minibatches=2, update_passes=20, entropy_coefficient=0.0, eval_every=0,
        samples_every=0, prompt_file=prompt_file, task_sampling="branch", credit="direct_apo",
        surrogate="direct_apo", episode_sampling="off", loss_normalizer="step",
        method_settings={
            "tasks": {"branch": {"actions": 100}}, "credit": {"direct_apo": {"rollouts": 4}},
            "surrogate": {"direct_apo": {"beta": 0.25}},
        },
    )  # fmt: skip
    model = make_llama(len(tokenizer), initializer_range=0.15)
    trainer = MSGRPOTrainer(model, tokenizer, "TestButtons-v0", config, quiet=True)
    before = trainer.rollout().returns()
    trainer.train()
    after = trainer.rollout().returns()
    assert len(before) == len(after) == 300  # so many samples for each of three lights
    assert after.mean() > before.mean() + 0.2
