"""Models that are made ready: the adapter follows the seed; layers that are no attention get no trees."""

import json
from dataclasses import replace

import pytest
import torch

from agents.msgrpo import MSGRPOTrainer
from agents.msgrpo.errors import ConfigError, UnusableModelError
from agents.msgrpo.learner.prepare import load_weights, prepare_model
from tests.agents.models.local.hybrids import PLAYABLE, UNPLAYABLE, make_hybrid
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, iterations=2, max_response_tokens=3)


def test_the_seed_decides_the_adapter(tokenizer, make_llama):
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


@pytest.mark.parametrize(
    "strange",
    [
        {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}},
        {"attn_implementation": "kernels-community/flash-attn2@refs/pr/1"},
    ],
)
def test_a_checkpoint_is_read_by_the_settings_of_the_model_that_is_there(strange, tokenizer, make_llama, tmp_path):
    """A stranger's checkpoint says nothing of what is loaded but the weights."""
    saved, other = make_llama(len(tokenizer)), make_llama(len(tokenizer))
    saved.save_pretrained(tmp_path)
    for weight in other.parameters():
        weight.data.zero_()
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | strange))
    load_weights(other, tmp_path)
    for name, weight in saved.state_dict().items():
        assert torch.equal(other.state_dict()[name], weight)


def test_a_checkpoint_whose_weights_may_hold_code_or_are_another_models_is_refused(tokenizer, make_llama, tmp_path):
    model = make_llama(len(tokenizer))
    model.save_pretrained(tmp_path / "larger")
    with pytest.raises(ConfigError, match="is of another model"):
        load_weights(make_llama(len(tokenizer) + 1), tmp_path / "larger")
    (tmp_path / "unsafe").mkdir()
    (tmp_path / "unsafe/other.safetensors").touch()
    torch.save(model.state_dict(), tmp_path / "unsafe/weights.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(model.state_dict(), "weights.bin")}
    (tmp_path / "unsafe/model.safetensors.index.json").write_text(json.dumps(index))
    model.config.save_pretrained(tmp_path / "unsafe")
    with pytest.raises(ConfigError, match=r"names 'weights.bin' as a file of weights"):
        load_weights(model, tmp_path / "unsafe")


def test_making_an_adapter_leaves_the_global_randomness_alone(tokenizer, make_llama):
    pytest.importorskip("peft")
    model = make_llama(len(tokenizer))
    before = torch.get_rng_state()
    prepare_model(model, tokenizer, replace(CONFIG, lora_rank=2))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAYABLE)
def test_a_hybrid_is_trained_by_rows_and_its_sampler_and_learner_agree(kind, tokenizer, prompt_file):
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
def test_a_model_that_cannot_be_sampled_here_is_refused_before_the_first_episode(kind, tokenizer, prompt_file):
    model = make_hybrid(kind, len(tokenizer))
    with pytest.raises(UnusableModelError, match=rf"{kind}ForCausalLM .*MSGRPOTrainer\(eng"):
        MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", replace(CONFIG, prompt_file=prompt_file), quiet=True)
