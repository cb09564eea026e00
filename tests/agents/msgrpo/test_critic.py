"""The critic: what it tells, its loss and gradient against plain loops in float64, its states, and training with it."""

import math
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agents.models.local.forward.llama_forward import unwrap
from agents.msgrpo import ConfigError, Heads, MSGRPOConfig, UnusableModelError
from agents.msgrpo.credit import Trajectory
from agents.msgrpo.critic import Critic, ValueModel, heads_of, own_weights
from agents.msgrpo.errors import TrainingDivergedError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import prepare_model
from tests.agents.msgrpo.hand_made import trajectory
from tests.agents.msgrpo.runs import SHORT
from tests.tiny_models import tiny_gpt2

V = 13
CONFIG = MSGRPOConfig(
    critic_learning_rate=1e-3, critic_minibatches=1, critic_clip=0.3, critic_max_grad_norm=0.0, adam_eps=1e-5
)
HEADS: Heads = {"state": "step", "each": "token"}
NAN = math.nan


def make_critic(heads: Heads = HEADS, config: MSGRPOConfig = CONFIG, seed: int = 0) -> Critic:
    """With heads that aren't 0, so that the backbone has a gradient at once."""
    critic = Critic(tiny_gpt2(V, seed=seed).double(), heads, config, Processes(), packing="rows")
    torch.manual_seed(seed + 1)
    torch.nn.init.normal_(critic.model.heads.weight, std=0.3)
    torch.nn.init.normal_(critic.model.heads.bias, std=0.3)
    return critic


def episodes(seed: int = 0) -> list[Trajectory]:
    """Three ragged episodes with prompts that repeat."""
    rng = np.random.default_rng(seed)
    made = []
    for lengths in ((2, 3), (1,), (4, 1, 2)):
        prompts = tuple(tuple(rng.integers(1, 4, int(rng.integers(1, 4))).tolist()) for _ in lengths)
        responses = tuple(tuple(rng.integers(0, V, length).tolist()) for length in lengths)
        rewards = rng.normal(size=len(lengths)).tolist()
        made.append(trajectory(rewards, prompt_ids=prompts, response_ids=responses))
    return made


def plain_values(critic: Critic, prompt: tuple[int, ...], response: tuple[int, ...]) -> torch.Tensor:
    """(K, H) one row at a time, through the backbone alone."""
    hidden = critic.model.backbone(input_ids=torch.tensor([prompt + response])).last_hidden_state[0]
    read = hidden[len(prompt) - 1 : len(prompt) + len(response) - 1]
    result: torch.Tensor = read @ critic.model.heads.weight.T + critic.model.heads.bias
    return result


@torch.no_grad()
def test_values_are_those_before_each_token_and_at_the_end_of_each_prompt():
    critic = make_critic()
    given = episodes()
    for told, each in zip(critic.complete(given), given, strict=True):
        for t in range(len(each)):
            wanted = plain_values(critic, each.prompt_ids[t], each.response_ids[t]).numpy()
            np.testing.assert_allclose(told.head_values["state"][t], wanted[0, 0], atol=1e-12)
            np.testing.assert_allclose(told.head_values["each"][t], wanted[:, 1], atol=1e-12)
            assert told.values is not None
            assert told.values[t] == told.head_values["state"][t]
    prompts = [each.prompt_ids[0] for each in given]
    wanted_firsts = [plain_values(critic, prompt, (0,))[0, 0].item() for prompt in prompts]
    np.testing.assert_allclose(critic.prompt_values(prompts, "state"), wanted_firsts, atol=1e-12)


@pytest.mark.parametrize("micro_batch_tokens", [1, 9, 1000])
def test_a_step_s_loss_and_gradient_are_those_of_a_plain_loop(micro_batch_tokens):
    """Each head's mean over its own targets, heads added, whatever the micro-batches; NaN has no part in it."""
    critic = make_critic(config=replace(CONFIG, micro_batch_tokens=micro_batch_tokens))
    given = critic.complete(episodes())
    rng = np.random.default_rng(1)
    states = [np.where(rng.random(len(each)) < 0.7, rng.normal(size=len(each)), NAN) for each in given]
    tokens = [[rng.normal(size=len(y)) for y in each.response_ids] for each in given]
    tokens[2][0][1] = NAN
    moved = [replace(each, head_values={k: _moved(v) for k, v in each.head_values.items()}) for each in given]

    twin = make_critic()  # the same weights
    losses: dict[str, list[torch.Tensor]] = {"state": [], "each": []}
    for i, each in enumerate(moved):
        for t in range(len(each)):
            values = plain_values(twin, each.prompt_ids[t], each.response_ids[t])
            for k, y in enumerate(tokens[i][t]):
                if not math.isnan(y):
                    losses["each"].append(_plain_loss(values[k, 1], y, each.head_values["each"][t][k], 0.3))
            if not math.isnan(states[i][t]):
                losses["state"].append(_plain_loss(values[0, 0], states[i][t], each.head_values["state"][t], 0.3))
    wanted = sum(sum(each) / len(each) for each in losses.values())
    wanted.backward()  # type: ignore[union-attr]
    gradients: dict[str, torch.Tensor] = {}
    step = critic.optimizer.step
    critic.optimizer.step = lambda: (gradients.update(_gradients(critic)), step())  # type: ignore[method-assign]
    metrics = critic.learn([(moved, {"state": states, "each": tokens})], np.random.default_rng(0))
    assert metrics["critic_loss"] == pytest.approx(wanted.item(), rel=1e-10)  # type: ignore[union-attr]
    for name, wanted_gradient in _gradients(twin).items():
        torch.testing.assert_close(gradients[name], wanted_gradient, atol=1e-10, rtol=1e-8)
    norm = math.sqrt(sum(float(each.square().sum()) for each in gradients.values()))
    assert metrics["critic_grad_norm"] == pytest.approx(norm)


def _moved(values: Any) -> Any:
    """Old values that differ from the present ones by up to 0.5, so that some are clipped."""
    rng = np.random.default_rng(2)
    if isinstance(values, np.ndarray):
        return values + rng.uniform(-0.5, 0.5, len(values))
    return [each + rng.uniform(-0.5, 0.5, len(each)) for each in values]


def _plain_loss(value: torch.Tensor, target: float, old: float, clip: float) -> torch.Tensor:
    near = value if abs(value.item() - old) <= clip else torch.tensor(old + math.copysign(clip, value.item() - old))
    worst = near if (near.item() - target) ** 2 > (value.item() - target) ** 2 else value
    return (worst - target) ** 2 / 2


def _gradients(critic: Critic) -> dict[str, torch.Tensor]:
    zero = {name: torch.zeros_like(each) for name, each in critic.model.named_parameters()}
    return zero | {n: p.grad.clone() for n, p in critic.model.named_parameters() if p.grad is not None}


def test_explained_variance_is_that_of_the_values_before_the_steps():
    """Targets 0, 1, 2, 3 (variance 5/4) and values off by a half up and down (variance 1/4): 1 - 1/5."""
    values = np.array([0.5, 0.5, 2.5, 2.5])
    lesson = [trajectory([0.0] * 4, head_values={"state": values})], {"state": [np.array([0.0, 1.0, 2.0, 3.0])]}
    metrics = make_critic({"state": "step"}).learn([lesson], np.random.default_rng(0))
    assert metrics["critic_explained_variance"] == pytest.approx(0.8)


def test_nothing_to_learn_or_a_loss_that_is_not_finite_leaves_it_as_it_is():
    critic = make_critic()
    before = {name: each.clone() for name, each in own_weights(critic.model).items()}
    given = critic.complete(episodes())
    nothing, infinite = ({"state": [np.full(len(each), value) for each in given]} for value in (NAN, np.inf))
    metrics = critic.learn([(given, nothing), (given, None), ([], None)], np.random.default_rng(0))
    assert metrics["critic_loss"] == metrics["critic_grad_norm"] == 0.0
    with pytest.raises(TrainingDivergedError, match=r"critic: the loss is .* Lower critic_learning_rate \(now 0.001\)"):
        critic.learn([(given, infinite)], np.random.default_rng(0))
    assert all(torch.equal(before[name], each) for name, each in own_weights(critic.model).items())
    assert critic.complete([]) == []


def test_a_state_can_be_taken_up_and_another_one_is_refused():
    one, two = make_critic(), make_critic(seed=5)
    given = one.complete(episodes())
    lesson: Any = (given, {"state": [each.rewards for each in given]})
    one.learn([lesson], np.random.default_rng(0))
    two.load_state_dict(deepcopy(one.state_dict()))  # optimisers share what they are given
    for critic in (one, two):
        critic.learn([lesson], np.random.default_rng(1))
    a, b = one.state_dict(), two.state_dict()
    assert all(torch.equal(a["weights"][name], b["weights"][name]) for name in a["weights"])
    renamed = make_critic({f"other_{name}": kind for name, kind in one.heads.items()})  # of the same shapes
    for other in (make_critic({"state": "step"}), renamed):
        with pytest.raises(ConfigError, match=r"needs a critic with the heads .* of another model or method"):
            other.load_state_dict(a)
    with pytest.raises(ConfigError, match="holds no critic, which credit = 'msgrpo' needs"):
        two.load_state_dict(None)


def test_what_can_not_be_used_is_said_in_words():
    class Sharded(Processes):
        sharded = True

    class Bare(torch.nn.Module):
        pass

    with pytest.raises(ConfigError, match=r"can't be sharded over processes \(FSDP\): train data-parallel"):
        Critic(tiny_gpt2(V), HEADS, CONFIG, Sharded(), packing="rows")
    with pytest.raises(UnusableModelError, match=r"Bare has no base_model .* choose a method of credit"):
        ValueModel(Bare(), ("state",))
    critic = make_critic()
    given = critic.complete(episodes())
    with pytest.raises(ConfigError, match="value_targets for 'other', which is no head; the heads are state, each"):
        critic.learn([(given, {"other": [each.rewards for each in given]})], np.random.default_rng(0))
    with pytest.raises(ConfigError, match=r"heads must be a name for each value .* got \{'a': 'episode'\}"):
        heads_of(SimpleNamespace(needs={"values"}, heads={"a": "episode"}))


# ---------------------------------------------------------------- the critic's model


@pytest.mark.parametrize("rank", [0, 2])
def test_trained_weights_are_copied_frozen_ones_shared_and_heads_begin_at_zero(make_llama, rank):
    policy = prepare_model(make_llama(11), [], MSGRPOConfig(lora_rank=rank))
    before, theirs = torch.get_rng_state(), {each.data_ptr() for each in policy.parameters()}
    model = ValueModel(policy, ("state",))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.cat([each.flatten() for each in model.heads.parameters()]).any()
    own = {name for name, each in model.named_parameters() if each.data_ptr() not in theirs}
    trained = {name for name, _ in model.named_parameters() if not rank or "lora_" in name or name.startswith("heads")}
    assert own == trained == set(own_weights(model))
    copied = dict(model.backbone.named_parameters())
    assert all(torch.equal(each, copied[name]) for name, each in unwrap(policy).base_model.named_parameters())


CRITIC = replace(SHORT, credit="ppo_turn", critic_learning_rate=1e-3)


def test_values_and_advantages_reach_the_update(make_trainer):
    trainer = make_trainer(CRITIC)
    first = trainer.iterate()
    assert first["critic_loss"] > 0
    assert first["optimizer_steps"] == 1
    batch = trainer.rollout()
    for each in batch.trajectories:
        assert each.values.shape == (len(each),)
        assert each.values.any()  # after one iteration they aren't 0 any more
        for value, prompt in zip(each.values, each.prompt_ids, strict=True):
            assert value == pytest.approx(trainer.critic.prompt_values([prompt], "state")[0], abs=1e-6)


def test_while_the_critic_warms_up_the_policy_stays_as_it_is(make_trainer):
    trainer = make_trainer(replace(CRITIC, critic_warmup=2))
    before, critic = (
        [each.detach().clone() for each in trainer.model.parameters()],
        trainer.critic.state_dict()["weights"],
    )
    for steps in (0, 0, 1):
        metrics = trainer.iterate()
        assert metrics["optimizer_steps"] == steps
        assert metrics["skipped"] is False  # nothing was skipped: it wasn't the policy's turn
        assert metrics["critic_loss"] > 0
        assert all(map(torch.equal, before, trainer.model.parameters())) == (steps == 0)
    assert not all(torch.equal(critic[name], each) for name, each in trainer.critic.state_dict()["weights"].items())


def test_a_resumed_run_steps_with_the_settings_that_it_has_now(make_trainer, tmp_path):
    config = replace(CRITIC, iterations=1, weight_decay=0.5, critic_minibatches=1, out=str(tmp_path / "run"))
    make_trainer(config).train()
    now = {"learning_rate": 1e-2, "weight_decay": 0.25, "adam_beta1": 0.5, "adam_beta2": 0.75, "adam_eps": 1e-3}
    resumed = make_trainer(replace(config, iterations=2, critic_learning_rate=1e-5, **now), resume=tmp_path / "run")
    for optimizer, rate in ((resumed.learner.optimizer, 1e-2), (resumed.critic.optimizer, 1e-5)):
        assert [group["weight_decay"] for group in optimizer.param_groups] == [0.25, 0]
        for group in optimizer.param_groups:
            assert (group["lr"], group["betas"], group["eps"]) == (rate, (0.5, 0.75), 1e-3)
        assert optimizer.state_dict()["state"][0]["step"] == 1  # what was learnt goes on


def test_a_diverged_critic_is_rescued_by_a_lower_learning_rate(make_trainer, tmp_path):
    config = replace(CRITIC, iterations=1, critic_minibatches=2, critic_learning_rate=1e38, out=str(tmp_path / "run"))
    with pytest.raises(TrainingDivergedError, match="Lower critic_learning_rate"):
        make_trainer(config).train()
    resumed = make_trainer(replace(config, critic_learning_rate=1e-5), resume=tmp_path / "run")
    assert np.isfinite(resumed.train()[-1]["critic_loss"])
