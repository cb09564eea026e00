"""The reward model by itself: its loss and gradient against plain ones, and what it learns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit import Trajectory
from agents.msgrpo.credit.batch import Preferences
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer
from research.methods.reward_model import RewardModel
from tests.agents.msgrpo.critic.test_critic import V, episodes
from tests.tiny_models import tiny_gpt2

CONFIG = MSGRPOConfig(learning_rate=1.5e-3, critic_max_grad_norm=0.0)


BETTER = Preferences([(0, 1), (0, 2), (2, 1)], 0.5)


def scorer(seed: int = 0) -> TokenScorer:
    return TokenScorer(tiny_gpt2(V, seed=seed).double(), temperature=1.0, chunk=64, autocast=None)


def make_model(config: MSGRPOConfig = CONFIG, policy: TokenScorer | None = None) -> RewardModel:
    processes = Processes()
    model = RewardModel(scorer(), config, processes, packing="rows", rate=2.0)
    model._policy = policy or model._policy
    processes.prepare(model._policy, torch.optim.SGD(model._policy.parameters()))
    return model


def plain_logprob(policy: TokenScorer, prompt: Sequence[int], response: Sequence[int]) -> torch.Tensor:
    logits = policy.causal_lm(input_ids=torch.tensor([[*prompt, *response]])).logits[0]
    scores = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
    return scores.gather(1, torch.tensor(response)[:, None]).sum()


def plain_ratios(model: RewardModel, each: Trajectory) -> torch.Tensor:
    ratios = [
        plain_logprob(model.model, prompt, response) - plain_logprob(model._policy, prompt, response).detach()
        for prompt, response in zip(each.prompt_ids, each.response_ids, strict=True)
    ]
    return torch.stack(ratios)


def test_it_begins_as_the_policy():
    for each in make_model().complete(episodes()):
        assert each.log_ratios is not None
        assert not each.log_ratios.any()  # exactly 0, whatever a sampler's arithmetic is


def test_it_follows_the_gradient_of_the_loss_of_pairs():
    model = make_model(policy=scorer(1))
    given = model.complete(episodes())
    ratios = [plain_ratios(model, each) for each in given]
    for each, plain in zip(given, ratios, strict=True):
        np.testing.assert_allclose(each.log_ratios, plain.detach(), atol=1e-10)
    values = [BETTER.beta * plain.mean() for plain in ratios]
    wanted = torch.stack([-torch.nn.functional.logsigmoid(values[i] - values[j]) for i, j in BETTER.pairs]).mean()
    gradients = torch.autograd.grad(wanted, list(model.model.parameters()))
    metrics = model.learn([(given, BETTER)], np.random.default_rng(0))
    assert metrics["critic_loss"] == pytest.approx(wanted.item(), abs=1e-10)
    for parameter, gradient in zip(model.model.parameters(), gradients, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-8, atol=1e-10)


def test_it_learns_which_episodes_are_better():
    model = make_model(replace(CONFIG, critic_passes=3))
    given = episodes()
    for _ in range(20):
        given = model.complete(given)
        told = model.learn([(given, BETTER)], np.random.default_rng(0))
    assert told["preferences_right"] == 1
    assert told["critic_loss"] < 0.1
    values = [np.mean(each.log_ratios) for each in model.complete(given) if each.log_ratios is not None]
    assert values[0] > values[2] > values[1]


@pytest.mark.parametrize("nothing", [None, Preferences([], 0.5)])
def test_without_pairs_it_stays_as_it_is(nothing):
    model = make_model()
    before = model.state_dict()["weights"]
    assert model.learn([(model.complete(episodes()), nothing)], np.random.default_rng(0)) == {
        "critic_loss": 0.0,
        "critic_grad_norm": 0.0,
    }
    assert all(torch.equal(before[name], each) for name, each in model.state_dict()["weights"].items())
