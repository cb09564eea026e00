"""Models that are made ready: the adapter follows the seed; layers that are no attention get no trees."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.learner.prepare import prepare_model
from tests.agents.models.local.hybrids import PLAYABLE, UNPLAYABLE, make_hybrid

CONFIG = MSGRPOConfig(
    groups=2, group_size=4, iterations=2, response_mode="direct", max_response_tokens=3, temperature=1.0,
    learning_rate=1e-3, minibatches=1, eval_every=0, samples_every=0,
)  # fmt: skip


def test_the_seed_decides_the_adapter(tokenizer: Any, make_llama: Any) -> None:
    pytest.importorskip("peft")

    def adapter(seed: int) -> dict[str, torch.Tensor]:
        model = make_llama(len(tokenizer))
        torch.seed()  # what was drawn before must not matter
        model = prepare_model(model, tokenizer, replace(CONFIG, lora_rank=2, seed=seed))
        return {name: weight for name, weight in model.named_parameters() if "lora_A" in name}

    one, same, other = adapter(0), adapter(0), adapter(1)
    assert one
    for name in one:
        assert torch.equal(one[name], same[name])
        assert not torch.equal(one[name], other[name])


def test_making_an_adapter_leaves_the_global_randomness_alone(tokenizer: Any, make_llama: Any) -> None:
    pytest.importorskip("peft")
    model = make_llama(len(tokenizer))
    before = torch.get_rng_state()
    prepare_model(model, tokenizer, replace(CONFIG, lora_rank=2))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAYABLE)
def test_a_hybrid_is_trained_by_rows_and_its_sampler_and_learner_agree(
    kind: str, tokenizer: Any, prompt_file: str
) -> None:
    model = make_hybrid(kind, len(tokenizer))
    config = replace(CONFIG, prompt_file=prompt_file)
    with pytest.warns(UserWarning, match=r"doesn't take token trees: not all of its layers are attention"):
        trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)
    history = trainer.train()
    assert any(metrics["grad_norm"] > 0 for metrics in history)
    for metrics in history:
        assert metrics.get("mismatch_max", 0.0) < 1e-4  # of every sampled token's log-probability


@pytest.mark.filterwarnings("ignore:.*doesn't take token trees")
@pytest.mark.parametrize("kind", UNPLAYABLE)
def test_a_model_that_cannot_be_sampled_here_is_refused_before_the_first_episode(
    kind: str, tokenizer: Any, prompt_file: str
) -> None:
    model = make_hybrid(kind, len(tokenizer))
    with pytest.raises(UnusableModelError, match=rf"{kind}ForCausalLM .*MSGRPOTrainer\(eng"):
        MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", replace(CONFIG, prompt_file=prompt_file), quiet=True)
