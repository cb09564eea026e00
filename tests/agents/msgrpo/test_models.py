"""Models that are made ready, and trained folders, which say how their model wants to be asked."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from transformers import AutoTokenizer

from agents import load_agent
from agents.loop.rollout import rollout
from agents.models.local.loading.card import PLAIN_TEMPLATE, Card, read_card, write_card
from agents.models.local.loading.load import load_model
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer, UnusableModelError
from agents.msgrpo.learner.prepare import load_weights, prepare_model, slow_dtype
from agents.msgrpo.trajectories import training_tasks
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from tests.agents.models.local.hybrids import PLAYABLE, UNPLAYABLE, make_hybrid
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, response_mode="think", iterations=1, eval_every=1, eval_episodes=2)
TEXTS = PromptTexts(
    system="", opening="$instructions", observation="$observation", response={"short": "Answer:"}, no_actions="",
    no_limit="",
)  # fmt: skip


@pytest.mark.parametrize("mode", ["direct", "think"])
def test_every_checkpoint_plays_at_once_in_its_mode_and_with_a_chat_template(mode, tokenizer, make_llama, tmp_path):
    config = replace(CONFIG, response_mode=mode, out=str(tmp_path))
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    trainer.train()
    for name in ("best", "last"):
        assert read_card(str(tmp_path / name)) == Card((mode,), PromptTexts.default())
        player = cast(Any, load_agent(f"hf:{tmp_path / name}"))
        assert player.prompt_map == PromptMap(mode)
        assert player.act(["Where to?"])[0].response is not None
        assert AutoTokenizer.from_pretrained(tmp_path / name).chat_template == PLAIN_TEMPLATE
        assert MSGRPOConfig.from_toml(tmp_path / name / "msgrpo.toml") == trainer.config
    pairs = zip(player.model.model.parameters(), trainer.model.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)
    assert tokenizer.chat_template is None  # the one that was passed in is left as it is


def test_a_prompt_map_object_is_what_episodes_are_prompted_with(tokenizer, make_llama, tmp_path):
    def make(prompt_map: PromptMap | None, **changes: Any) -> MSGRPOTrainer:
        config = replace(CONFIG, out=str(tmp_path), **changes)
        model = make_llama(len(tokenizer))
        return MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, prompt_map=prompt_map, quiet=True)

    own = PromptMap("short", texts=TEXTS)
    trainer = make(own)
    played = rollout(trainer.policy, training_tasks(trainer.config, trainer.games, 0))
    asked = {step.turn.prompt[-1].content for episode in played for step in episode.steps}
    assert asked
    assert asked <= {f"Go right.\n\ncell {cell}\n\nAnswer:" for cell in range(3)}
    trainer.train()
    assert read_card(str(tmp_path / "last")) == Card(("short",), TEXTS)
    assert cast(Any, load_agent(f"hf:{tmp_path / 'last'}")).prompt_map == own  # and played in no other way
    make(own, iterations=2).resume(tmp_path)
    for other in (None, PromptMap("direct")):
        with pytest.raises(ConfigError, match=r"other prompts: .*prompt_map="):
            make(other).resume(tmp_path)
    with pytest.raises(ConfigError, match=r"prompt_file = 'mine\.toml' and a prompt_map"):
        make(own, prompt_file="mine.toml")


def test_a_model_is_trained_with_the_prompts_that_it_knows(tokenizer, make_llama, tmp_path):
    before, folder = PromptTexts.from_file("without-clock"), tmp_path / "base"
    make_llama(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_card(folder, modes=["think"], texts=before)
    model = load_model(str(folder), dtype="float32", device="cpu")[0]
    config = replace(CONFIG, out=str(tmp_path / "out"))
    trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)
    assert trainer.policy.prompt_map == PromptMap("think", texts=before)
    trainer.train()
    assert read_card(str(tmp_path / "out" / "last")) == Card(("think",), before)
    fresh = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    assert fresh.policy.prompt_map == PromptMap("think")  # of a model without a card: the package's own
    own = PromptMap("direct")  # a program that gives a prompt map means it
    given = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", CONFIG, prompt_map=own, quiet=True)
    assert given.policy.prompt_map == own


SHORTER = replace(SHORT, iterations=2, max_response_tokens=3)


def test_the_seed_decides_the_adapter_and_the_global_randomness_is_left_alone(tokenizer, make_llama):
    pytest.importorskip("peft")

    def adapter(seed: int) -> list[torch.Tensor]:
        model = make_llama(len(tokenizer))
        torch.seed()  # what was drawn before must not matter
        before = torch.get_rng_state()
        model = prepare_model(model, tokenizer, replace(SHORTER, lora_rank=2, seed=seed))
        assert torch.equal(torch.get_rng_state(), before)
        return [weight for name, weight in model.named_parameters() if "lora_A" in name]

    one, same, other = adapter(0), adapter(0), adapter(1)
    assert one
    assert all(map(torch.equal, one, same))
    assert not any(map(torch.equal, one, other))


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


@pytest.mark.parametrize("kind", PLAYABLE)
def test_a_hybrid_is_trained_by_rows_and_its_sampler_and_learner_agree(kind, tokenizer, prompt_file):
    model = make_hybrid(kind, len(tokenizer))
    config = replace(SHORTER, prompt_file=prompt_file)
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
        MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", replace(SHORTER, prompt_file=prompt_file), quiet=True)


def test_a_type_that_the_processor_is_slow_in_is_warned_of(monkeypatch):
    monkeypatch.setattr("agents.models.local.loading.load.multiplies_bfloat16", lambda: False)
    half, cpu = MSGRPOConfig(dtype="bfloat16", param_dtype="bfloat16", device="cpu"), torch.device("cpu")
    assert "dtype and param_dtype = 'bfloat16', for which this processor has no instructions" in slow_dtype(half, cpu)
    assert slow_dtype(MSGRPOConfig(dtype="auto", device="cpu"), cpu) == ""
