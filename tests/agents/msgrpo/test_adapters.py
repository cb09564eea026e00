"""Training that goes on from an adapter: one adapter in the end, the warm start inside it."""

import json
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from agents.models.hf import check
from agents.models.local.loading.adapters import save_pretrained
from agents.models.local.loading.load import load_model
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, load
from agents.msgrpo.engines.engine import EngineParts
from agents.msgrpo.engines.vllm import VLLM
from tests.agents.msgrpo import runs

peft: Any = pytest.importorskip("peft")
from safetensors.torch import load_file  # noqa: E402

SHORT = replace(
    runs.SHORT, format_penalty=0.5, learning_rate=1e-2, checkpoint_every=2, keep_checkpoints=9, kl_coefficient=0.1,
    preflight_episodes=0, min_valid_share=0, scenarios=("TestCorridor-v0",),
)  # fmt: skip

BASE = "base_model_name_or_path"


@pytest.fixture
def warm(tokenizer, make_llama, tmp_path):
    """An adapter of rank 3 that says something, on a base in a folder beside it."""
    base = tmp_path / "base"
    make_llama(len(tokenizer)).save_pretrained(base)
    tokenizer.save_pretrained(base)
    from transformers import AutoModelForCausalLM

    settings = peft.LoraConfig(r=3, lora_alpha=12, target_modules="all-linear", lora_dropout=0.1, task_type="CAUSAL_LM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that are being retired
        model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(base), settings)
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    model.save_pretrained(tmp_path / "warm")
    return tmp_path / "warm"


@pytest.fixture
def config(warm, prompt_file):
    return replace(SHORT, model=str(warm), prompt_file=prompt_file)


def trainer_of(config: MSGRPOConfig) -> MSGRPOTrainer:
    return MSGRPOTrainer(*load(config), config=config, quiet=True)


def test_an_adapter_names_no_module(warm, tmp_path, monkeypatch):
    """peft imports the module of megatron_core, of older versions any, which may be a folder of a stranger's."""
    settings = warm / "adapter_config.json"
    told = {"megatron_config": {"a": 1}, "megatron_core": "megatron.stranger"}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | told))
    module = tmp_path / "megatron" / "stranger.py"
    module.parent.mkdir()
    module.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'MARKER')!r}).touch()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="no module is imported since an adapter names it"):
        load_model(str(warm), dtype="float32", device="cpu")
    assert not (tmp_path / "MARKER").exists()


def test_an_adapter_is_trained_further_and_stays_one(config, warm, tmp_path):
    trainer = trainer_of(
        replace(config, out=str(tmp_path / "run"), lora_rank=3, lora_alpha=12, gradient_checkpointing=True)
    )  # which agree with it
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trained = {name for name, weight in trainer.model.named_parameters() if weight.requires_grad}
    assert trained == {name for name in before if "lora_" in name}
    history = trainer.train()
    assert history[0]["kl"] == pytest.approx(0, abs=1e-9)  # the reference is the adapter as it began: the base is far
    assert history[-1]["kl"] > 1e-6
    frozen = {each.data_ptr() for each in trainer.learner.reference._frozen.parameters()}
    weights = dict(trainer.model.named_parameters())
    assert {
        name for name, each in weights.items() if each.data_ptr() not in frozen
    } == trained  # the base is there once
    assert {name for name, weight in weights.items() if not torch.equal(before[name], weight)} == trained
    settings = json.loads((tmp_path / "run/last/adapter_config.json").read_text())
    assert (settings["r"], settings["lora_alpha"], settings[BASE]) == (3, 12, str(tmp_path / "base"))
    was, now = (load_file(each / "adapter_model.safetensors") for each in (warm, tmp_path / "run/last"))
    moved = {name: (now[name] - each).norm() / each.norm() for name, each in was.items()}
    assert 0 < max(moved.values()) < 0.5  # it went on from there and didn't begin anew
    parts = EngineParts(trainer.model, trainer.tokenizer, config, torch.float32)
    assert VLLM().updater_of(parts) == "lora"  # servers are sent the adapter alone


def test_a_new_adapter_is_trained_alone_and_the_reference_is_the_adapter_off(config, tmp_path):
    trainer = trainer_of(replace(config, model=str(tmp_path / "base"), lora_rank=2, learning_rate=0.05))
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    kl = [metrics["kl"] for metrics in trainer.train()]
    changed = {name for name, weight in trainer.model.named_parameters() if not torch.equal(before[name], weight)}
    assert changed
    assert all("lora_" in name for name in changed)
    assert kl[0] == pytest.approx(0, abs=1e-9)
    assert max(kl) > 1e-6


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
@pytest.mark.parametrize("named", ["./base", "hf:base"])
def test_an_adapter_of_a_folder_here_is_loaded_from_anywhere(config, tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    trainer = trainer_of(replace(config, model=named, lora_rank=2))
    save_pretrained(trainer.model, "made")
    trainer.tokenizer.save_pretrained("made")
    settings = tmp_path / "made/adapter_config.json"
    told = json.loads(settings.read_text())
    settings.write_text(json.dumps(told | {BASE: named}))  # as others write it
    again, _ = load_model("made", dtype="float32", device="cpu")
    save_pretrained(again, "again")
    assert json.loads(Path("again/adapter_config.json").read_text())[BASE] == told[BASE]
    settings.write_text(json.dumps(told))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    check("../made")
    load_model("../made", dtype="float32", device="cpu")
    (tmp_path / "base").rename(tmp_path / "gone")
    for base, why in ((told[BASE], "no folder"), ("gguf:gone.gguf", "no file")):
        settings.write_text(json.dumps(told | {BASE: base}))
        for refused in (check, partial(load_model, dtype="float32", device="cpu")):
            with pytest.raises(ValueError, match=rf"'\.\./made' stands on .*: {why} .* put its place into {BASE} in"):
                refused("../made")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lora_rank": 8}, r"lora_rank = 8, but the model has an adapter already, with lora_rank = 3"),
        ({"lora_alpha": 5}, r"lora_alpha = 5, .* with lora_alpha = 12"),
        ({"lora_targets": ("q_proj",)}, r"lora_targets = \['q_proj'\], .*'down_proj'"),
    ],
)
def test_settings_that_contradict_the_adapter_are_refused(config, settings, says):
    with pytest.raises(ConfigError, match=says):
        trainer_of(replace(config, **settings))


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ({"lora_rank": 4}, {"lora_rank": 8}, "lora_rank = 8, but .* lora_rank = 4: accepted is lora_rank = 4"),
        ({"lora_rank": 0}, {"lora_rank": 4}, "lora_rank = 4, but .* holds no adapter: accepted is lora_rank = 0"),
        ({"lora_rank": 4}, {"lora_targets": ("q_proj",)}, r"lora_targets = \['q_proj'\], but .*'v_proj'"),
        ({"lora_rank": 0, "reference_mixup": 0.05}, {"reference_mixup": 0.0}, "reference_mixup = 0, but"),
    ],
)
def test_a_run_goes_on_with_the_adapter_and_the_reference_that_it_has(
    tokenizer, make_llama, prompt_file, tmp_path, was, now, says
):
    config = replace(SHORT, prompt_file=prompt_file, iterations=1, out=str(tmp_path / "run"), **was)
    MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, config=config, quiet=True).save()
    resumed = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, config=replace(config, **now), quiet=True)
    with pytest.raises(ConfigError, match=says):
        resumed.resume(tmp_path / "run")
