"""The trainer with a critic: true values, warming up, resuming, samplers that ask for values, several processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo.errors import TrainingDivergedError
from tests.agents.msgrpo.learner.test_distributed import run
from tests.agents.msgrpo.runs import SHORT

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


def two_processes_equal_one(
    tmp_path: Path, tokenizer: Any, make_llama: Any, prompt_file: str, credit: str, told: str
) -> None:
    model = str(tmp_path / "model")
    make_llama(len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    settings: dict[str, Any] = {"credit": credit, "critic_learning_rate": 1e-3, "critic_passes": 2}
    one, weights_one = run(tmp_path / "one", model, prompt_file, 1, "ddp", **settings)
    two, weights_two = run(tmp_path / "two", model, prompt_file, 2, "ddp", **settings)
    assert any(h["critic_loss"] > 0 for h in one)
    for a, b in zip(one, two, strict=True):
        for name in ("loss", "grad_norm", "critic_loss", "critic_grad_norm", told):
            assert a[name] == pytest.approx(b[name], rel=2e-3, abs=2e-5), name
    for name in weights_one:
        torch.testing.assert_close(weights_two[name], weights_one[name], atol=2e-5, rtol=1e-3)
