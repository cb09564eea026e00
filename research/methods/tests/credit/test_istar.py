"""iStar and its reward model: by hand, against plain gradients, and what they learn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Trajectory
from agents.msgrpo.credit.batch import Preferences
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer
from research.methods.reward_model import RewardModel
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import untimed
from tests.agents.msgrpo.test_critic import CRITIC, V, episodes
from tests.tiny_models import tiny_gpt2


def episode(rewards: list[float], ratios: list[float], group: str = "a") -> Trajectory:
    return trajectory(rewards, group=group, log_ratios=np.array(ratios))


GIVEN = batch(
    episode([0.0, 1.0], [0.2, 0.4]), episode([0.0], [-0.8]), episode([0.0, 0.0], [0.0, 0.2]), episode([1.0], [0.1], "b")
)


def test_returns_and_rewards_less_those_of_the_others():
    credit: Any = METHODS.make("istar", {"step_weight": 0.5}).assign(GIVEN, np.random.default_rng(0))
    ratios = np.array([0.2, 0.4, -0.8, 0.0, 0.2]) / 0.8  # of group a; the largest of the batch is 0.8
    others = (ratios - ratios.mean()) * 5 / 4
    whole = np.array([1.0, 1.0, -0.5, -0.5, -0.5])
    np.testing.assert_allclose(np.concatenate(credit.advantages[:3]), whole + 0.5 * others)
    np.testing.assert_allclose(credit.advantages[3], [1.0 + 0.5 * 0.1 / 0.8])  # alone: nothing is taken off
    assert credit.preferences == Preferences([(0, 1), (0, 2)], 0.05)
    assert credit.metrics["preferences"] == 2
    assert credit.metrics["reward_log_ratio"] == pytest.approx(0.8)


def test_before_the_reward_model_has_learnt_equal_episodes_have_exactly_nothing():
    istar, rng = METHODS.make("istar"), np.random.default_rng(0)
    credit = istar.assign(batch(episode([1.0], [0.0]), episode([1.0], [0.0])), rng)
    assert not np.concatenate(credit.advantages).any()
    assert not credit.preferences.pairs
    with pytest.raises(ValueError, match="the trajectory has no log_ratios"):
        istar.assign(batch(trajectory([1.0])), rng)


def test_a_run_with_one_can_be_resumed_bit_for_bit(make_trainer, tmp_path):
    config = replace(CRITIC, credit="istar", iterations=3)
    whole = make_trainer(config)
    history = whole.train()
    assert history[0]["reward_log_ratio"] == 0  # it is the policy
    assert all(h["reward_log_ratio"] > 0 for h in history[1:])
    assert any(h["preferences"] > 0 and h["critic_loss"] > 0 for h in history)
    part = make_trainer(replace(config, iterations=1, out=str(tmp_path / "part")))
    part.train()
    resumed = make_trainer(replace(config, out=str(tmp_path / "part")), resume=tmp_path / "part")
    assert untimed(resumed.train()) == untimed(history)
    with pytest.raises(ConfigError, match=r"credit = 'ppo_turn' .* with the heads {'reward': 'response'}"):
        make_trainer(replace(config, credit="ppo_turn")).resume(tmp_path / "part")
    with pytest.raises(ConfigError, match="credit = 'istar' learns a reward model, and task_sampling = 'pcl'"):
        make_trainer(replace(config, task_sampling="pcl"))  # it is the only model beside the policy


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


def plain_ratios(model: RewardModel, each: Trajectory) -> torch.Tensor:
    def logprob(scorer: TokenScorer, prompt: Sequence[int], response: Sequence[int]) -> torch.Tensor:
        logits = scorer.causal_lm(input_ids=torch.tensor([[*prompt, *response]])).logits[0]
        scores = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
        return scores.gather(1, torch.tensor(response)[:, None]).sum()

    rows = zip(each.prompt_ids, each.response_ids, strict=True)
    return torch.stack([logprob(model.model, *row) - logprob(model._policy, *row).detach() for row in rows])


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
    right = [float(values[i] > values[j]) for i, j in BETTER.pairs]
    assert metrics["preferences_right"] == pytest.approx(np.mean(right))
    for parameter, gradient in zip(model.model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-8, atol=1e-10)


def test_it_begins_as_the_policy_and_without_pairs_stays_as_it_is():
    model = make_model()
    before, given = model.state_dict()["weights"], model.complete(episodes())
    assert not any(each.log_ratios.any() for each in given)  # exactly 0, whatever a sampler's arithmetic is
    told = model.learn([(given, None), (given, Preferences([], 0.5))], np.random.default_rng(0))
    assert told == {"critic_loss": 0.0, "critic_grad_norm": 0.0}
    assert all(torch.equal(before[name], each) for name, each in model.state_dict()["weights"].items())
