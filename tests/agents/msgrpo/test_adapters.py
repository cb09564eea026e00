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
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.__main__ import load
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


def adapter_in(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(folder / "adapter_model.safetensors")
    return found


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


@pytest.mark.slow
def test_an_adapter_is_trained_further_and_stays_one(config, warm, tmp_path):
    trainer = trainer_of(replace(config, out=str(tmp_path / "run")))
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trained = {name for name, weight in trainer.model.named_parameters() if weight.requires_grad}
    assert trained == {name for name in before if "lora_" in name}
    trainer.train()
    changed = {name for name, weight in trainer.model.named_parameters() if not torch.equal(before[name], weight)}
    assert changed == trained
    last = tmp_path / "run" / "last"
    settings = json.loads((last / "adapter_config.json").read_text())
    assert (settings["r"], settings["lora_alpha"]) == (3, 12)
    assert settings["base_model_name_or_path"] == str(tmp_path / "base")
    was, now = adapter_in(warm), adapter_in(last)
    assert {name: weight.shape for name, weight in was.items()} == {name: weight.shape for name, weight in now.items()}
    moved = {name: (now[name] - was[name]).norm() / was[name].norm() for name in was}
    assert 0 < max(moved.values()) < 0.5  # it went on from there and didn't begin anew


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
@pytest.mark.parametrize("named", ["base", "./base", "hf:base"])
def test_an_adapter_of_a_folder_here_is_loaded_from_anywhere(config, tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    trainer = trainer_of(replace(config, model=named, lora_rank=2))
    save_pretrained(trainer.model, "made")
    trainer.tokenizer.save_pretrained("made")
    settings = Path("made/adapter_config.json")
    told = json.loads(settings.read_text())
    settings.write_text(json.dumps(told | {BASE: named}))  # as others write it
    again, _ = load_model("made", dtype="float32", device="cpu")
    save_pretrained(again, "again")
    assert json.loads(Path("again/adapter_config.json").read_text())[BASE] == told[BASE]
    settings.write_text(json.dumps(told))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    check("../made")
    load_model("../made", dtype="float32", device="cpu")
    (tmp_path / "base").rename(tmp_path / "gone")
    for refused in (check, partial(load_model, dtype="float32", device="cpu")):
        for base, why in ((told[BASE], "no folder"), ("gguf:gone.gguf", "no file")):
            (tmp_path / settings).write_text(json.dumps(told | {BASE: base}))
            with pytest.raises(ValueError, match=rf"'\.\./made' stands on .*: {why} .* put its place into {BASE} in"):
                refused("../made")


@pytest.mark.slow
def test_the_reference_is_the_adapter_as_it_began(config):
    trainer = trainer_of(config)
    history = trainer.train()
    assert history[0]["kl"] == pytest.approx(0, abs=1e-9)  # to the bare base it would be far
    assert history[-1]["kl"] > 1e-6
    assert trainer.learner.reference is not None
    ids = [each.data_ptr() for each in trainer.model.parameters() if not each.requires_grad]
    frozen = trainer.learner.reference._frozen
    assert {each.data_ptr() for each in frozen.parameters()} >= set(ids)  # the base is in memory once


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lora_rank": 8}, r"lora_rank = 8, but the model has an adapter already, with lora_rank = 3"),
        ({"lora_rank": 3}, r"lora_alpha = 32, .* with lora_alpha = 12"),
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
        ({"lora_rank": 4}, {"lora_rank": 0}, "lora_rank = 0, but .* lora_rank = 4: accepted is lora_rank = 4"),
        ({"lora_rank": 0}, {"lora_rank": 4}, "lora_rank = 4, but .* holds no adapter: accepted is lora_rank = 0"),
        ({"lora_rank": 4}, {"lora_targets": ("q_proj",)}, r"lora_targets = \['q_proj'\], but .*'v_proj'"),
        ({"lora_rank": 4, "reference_mixup": 0.05}, {"reference_mixup": 0.0}, "reference_mixup = 0, but"),
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


def test_settings_that_agree_with_the_adapter_are_accepted(config):
    model = trainer_of(replace(config, lora_rank=3, lora_alpha=12, gradient_checkpointing=True))
    assert model.iterate()["grad_norm"] > 0


def test_servers_are_sent_the_adapter_that_came_with_the_model(config):
    model, tokenizer = load(config)
    trainer = MSGRPOTrainer(model, tokenizer, config=config, quiet=True)
    parts = EngineParts(trainer.model, tokenizer, config, torch.float32, rank=0, processes=1)
    assert VLLM().updater_of(parts) == "lora"  # though no setting names a rank
