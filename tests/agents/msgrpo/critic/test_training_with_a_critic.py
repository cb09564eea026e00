"""The trainer with a critic: true values, warming up, resuming, samplers that ask for values, several processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOTrainer
from agents.msgrpo.credit import Batch, Floats, Trajectory
from agents.msgrpo.errors import TrainingDivergedError
from agents.msgrpo.tasks import Iteration
from tests.agents.msgrpo.learner.test_distributed import run
from tests.agents.msgrpo.remembering import COUNTING, MOVING
from tests.agents.msgrpo.runs import SHORT, same_weights, untimed

CRITIC = replace(SHORT, credit="ppo_turn", critic_learning_rate=1e-3)


def weights(trainer: MSGRPOTrainer) -> list[torch.Tensor]:
    return [each.detach().clone() for each in trainer.model.parameters()]


def test_no_critic_where_nothing_needs_values(make_trainer):
    trainer = make_trainer(replace(CRITIC, credit="msgrpo"))
    assert trainer.critic is None
    assert not any("critic" in name for name in trainer.iterate())
    assert trainer.rollout().trajectories[0].values is None


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


@pytest.mark.slow
def test_while_the_critic_warms_up_the_policy_stays_as_it_is(make_trainer):
    trainer = make_trainer(replace(CRITIC, critic_warmup=2))
    before, critic = weights(trainer), trainer.critic.state_dict()["weights"]
    history = trainer.train()
    assert [h["optimizer_steps"] for h in history] == [0, 0, 1, 1]
    assert [h["update_tokens"] > 0 for h in history] == [False, False, True, True]
    assert not any(h["skipped"] for h in history)  # nothing was skipped: it wasn't the policy's turn
    assert all(h["critic_loss"] > 0 for h in history)
    alone = make_trainer(replace(CRITIC, iterations=2, critic_warmup=2))
    alone.train()
    assert all(torch.equal(a, b) for a, b in zip(before, weights(alone), strict=True))
    assert not all(torch.equal(critic[name], each) for name, each in alone.critic.state_dict()["weights"].items())


@pytest.mark.slow
@pytest.mark.parametrize("lora", [0, 4])
def test_resume_equals_the_uninterrupted_run_bit_for_bit(make_trainer, tmp_path, lora):
    config = replace(CRITIC, critic_minibatches=2, critic_passes=2, lora_rank=lora, critic_warmup=1)
    whole = make_trainer(config)
    whole.train()
    part = make_trainer(replace(config, iterations=2, out=str(tmp_path / "part")))
    part.train()
    resumed = make_trainer(replace(config, out=str(tmp_path / "part")), resume=tmp_path / "part")
    resumed.train()
    assert untimed(whole.history) == untimed(resumed.history)
    assert same_weights(whole, resumed)
    one, two = whole.critic.state_dict(), resumed.critic.state_dict()
    assert one["weights"].keys() == two["weights"].keys()
    assert all(torch.equal(one["weights"][name], two["weights"][name]) for name in one["weights"])
    for number, state in one["optimizer"]["state"].items():
        assert all(torch.equal(value, two["optimizer"]["state"][number][name]) for name, value in state.items())


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


def test_a_checkpoint_says_whose_state_it_has(make_trainer, tmp_path):
    config = replace(CRITIC, credit=MOVING, iterations=1, out=str(tmp_path / "run"))
    make_trainer(config).train()
    resumed = make_trainer(replace(config, credit=COUNTING, iterations=2))
    with pytest.warns(UserWarning, match="credit: Counting begins anew and leaves what Moving has learnt"):
        resumed.resume(tmp_path / "run")
    assert "moving_mean" in resumed.train()[-1]


class Hardest:
    """Plays the half of twice as many tasks whose first prompts are worth least, and teaches their mean return."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    heads: ClassVar[dict[str, str]] = {"start": "step"}

    def sample(self, iteration: Iteration, rng: np.random.Generator) -> list[Trajectory]:
        tasks = [*iteration.tasks(), *iteration.tasks(1)]
        values = iteration.prompt_values(tasks)
        self.values = values
        return iteration.play([tasks[i] for i in np.argsort(values, kind="stable")[: len(tasks) // 2]])

    def value_targets(self, batch: Batch) -> dict[str, list[Floats]]:
        targets = [np.full(len(each), np.nan) for each in batch.trajectories]
        for members in batch.groups.values():
            mean = np.mean([batch.trajectories[i].returned() for i in members])
            for i in members:
                targets[i][0] = mean
        return {"start": targets}


@pytest.mark.slow
def test_a_task_sampler_may_need_values_whatever_the_credit_needs(make_trainer):
    config = replace(CRITIC, task_sampling=f"{__name__}:Hardest", iterations=3)
    alone = make_trainer(replace(config, credit="msgrpo"))
    history = alone.train()
    assert tuple(alone.critic.heads) == ("start",)
    assert history[-1]["critic_loss"] > 0
    assert len(set(alone.methods.sampler.values.tolist())) == 2  # the corridor begins in one of two cells
    both = make_trainer(replace(config, iterations=2))
    metrics = both.train()[-1]
    assert tuple(both.critic.heads) == ("state", "start")
    assert {"critic_explained_variance_state", "critic_explained_variance_start"} < metrics.keys()


class SameName(Hardest):
    heads: ClassVar[dict[str, str]] = {"state": "step"}


def test_heads_that_can_not_be_used_are_said_in_words(make_trainer):
    with pytest.raises(ConfigError, match="SameName' both have a value named 'state'"):
        make_trainer(replace(CRITIC, task_sampling=f"{__name__}:SameName"))


@pytest.mark.nightly
def test_two_processes_equal_one(tmp_path, tokenizer, make_llama, prompt_file):
    two_processes_equal_one(tmp_path, tokenizer, make_llama, prompt_file, "ppo_turn", "critic_explained_variance")


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
