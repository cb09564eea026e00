"""Rollouts sampled elsewhere: an engine in another process that is sent new weights, adapters merged."""

import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import pytest
import torch

from agents.models.base import Decoding
from agents.models.local.forward.llama_forward import why_not
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.engines.engine import TakesWeights, Weights, made_by
from agents.msgrpo.engines.live import CopyEngine, merged_weights
from agents.msgrpo.errors import RolloutError, UnusableModelError
from agents.msgrpo.learner.prepare import prepare_model
from agents.turn import Message, Prompt, Turn

CONFIG = MSGRPOConfig(
    groups=2, group_size=4, iterations=3, response_mode="direct", max_response_tokens=2, temperature=1.0,
    minibatches=1, learning_rate=1e-2, eval_every=0, samples_every=0,
)  # fmt: skip


def serve(pipe: Connection, tokenizer: Any, config: Any) -> None:
    """The other process: its own model, which begins with random weights of its own."""
    from transformers import LlamaForCausalLM

    from agents.models.local.transformers import TransformersModel

    torch.manual_seed(99)
    model = LlamaForCausalLM(config).eval()
    sampler = TransformersModel(model, tokenizer)
    parameters = dict(model.named_parameters())
    while True:
        kind, *values = pipe.recv()
        if kind == "stop":
            return
        if kind == "weight":
            name, tensor = values
            with torch.no_grad():
                parameters[name].copy_(torch.tensor(tensor))
        else:
            completions = sampler.generate(*values)
            pipe.send([replace(c, logprobs=None) if kind == "silent" else c for c in completions])


class OtherProcess:
    """A stand-in for an engine such as vLLM's: everything goes through a pipe, nothing is shared."""

    name = "other-process"

    def __init__(self, tokenizer: Any, config: Any, *, silent: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, tokenizer, config), daemon=True)
        self.process.start()
        self.kind, self.updates = "silent" if silent else "generate", 0
        self.version = 0

    def generate(self, prompts: Sequence[Prompt], decoding: Decoding, seeds: Sequence[tuple[int, ...]]) -> list[Turn]:
        self.pipe.send((self.kind, prompts, decoding, seeds))
        completions: list[Turn] = self.pipe.recv()
        return made_by(self.version, completions)

    def update_weights(self, weights: Weights, version: int) -> None:
        for name, tensor in weights:
            self.pipe.send(("weight", name, tensor.numpy()))
        self.updates, self.version = self.updates + 1, version

    def close(self) -> None:
        self.pipe.send(("stop",))
        self.process.join(10)


@pytest.mark.slow
@pytest.mark.parametrize("lora", [0, 2])
def test_an_engine_in_another_process_samples_with_the_learners_weights(
    tokenizer: Any, make_llama: Callable[..., Any], prompt_file: str, lora: int
) -> None:
    model = make_llama(len(tokenizer))
    engine = OtherProcess(tokenizer, model.config, silent=lora > 0)
    assert isinstance(engine, TakesWeights)
    try:
        cap = 0.0 if lora else 2.0  # weights need the sampler's log-probabilities
        config = replace(CONFIG, prompt_file=prompt_file, lora_rank=lora, importance_cap=cap)
        trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, engine=engine, quiet=True)
        history = trainer.train()
        live = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True).train()
        assert engine.updates == 1 + sum(not h["skipped"] for h in history)
        for mine, theirs in zip(history, live, strict=True):
            assert mine["return"] == theirs["return"]
            assert mine["response_tokens"] == theirs["response_tokens"]
            if not lora and not mine["skipped"]:
                assert mine["mismatch_max"] < 1e-4  # compared with what the learner recomputes
        assert any(not h["skipped"] for h in history)
    finally:
        engine.close()


def test_merged_weights_are_those_of_the_adapted_model(tokenizer: Any, make_llama: Callable[..., Any]) -> None:
    config = replace(CONFIG, lora_rank=2, lora_targets=("q_proj", "down_proj"))
    model: Any = prepare_model(make_llama(len(tokenizer)), tokenizer, config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_()
    before = {name: p.clone() for name, p in model.named_parameters()}
    engine = CopyEngine(model, tokenizer, torch.float32)
    engine.update_weights(merged_weights(model), 1)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    (got,) = engine.generate([(Message("user", "left"),)], Decoding(temperature=1.0, max_tokens=3), [(0,)])
    ids = torch.tensor([[*got.prompt_ids, *got.response_ids]])  # type: ignore[misc]
    wanted = torch.log_softmax(model(ids).logits[0], -1)
    for t, (token, logp) in enumerate(zip(got.response_ids, got.logprobs, strict=True)):  # type: ignore[arg-type]
        assert wanted[len(got.prompt_ids) - 1 + t, token].item() == pytest.approx(logp, abs=1e-4)  # type: ignore[arg-type]


def adapted(model: Any, **settings: Any) -> Any:
    """The model with an adapter of random weights and, in DoRA, of magnitudes that aren't the base's."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(
        r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM", **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft warns of what can't be merged later
        made = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "magnitude" in name:
                parameter.mul_(1 + torch.rand_like(parameter))
    return made.eval()


@pytest.mark.parametrize("settings", [{"use_dora": True}, {"lora_bias": True}, {"use_rslora": True}], ids=str)
def test_adapters_that_do_more_than_add_a_matrix_are_sampled_as_peft_computes_them(
    settings: dict[str, Any], tokenizer: Any, make_llama: Callable[..., Any]
) -> None:
    model = adapted(make_llama(len(tokenizer), attention_bias=True, mlp_bias=True), **settings)
    ids = torch.arange(8)[None]
    with torch.no_grad():
        wanted = torch.log_softmax(model(ids).logits[0], -1)
        with model.disable_adapter():
            assert (torch.log_softmax(model(ids).logits[0], -1) - wanted).abs().max() > 0.01
    before = {name: p.clone() for name, p in model.named_parameters()}
    engine = CopyEngine(model, tokenizer, torch.float32)
    engine.update_weights(merged_weights(model), 1)
    with torch.no_grad():
        got = torch.log_softmax(engine.local_model.model(ids).logits[0], -1)
        again = torch.log_softmax(model(ids).logits[0], -1)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    torch.testing.assert_close(again, wanted, atol=0, rtol=0)  # nothing of the merging stays behind


@pytest.mark.parametrize(
    ("settings", "bias"), [({"lora_bias": True}, False), ({"alora_invocation_tokens": [1, 2]}, True)], ids=str
)
def test_adapters_that_cannot_be_merged_are_refused(
    settings: dict[str, Any], bias: bool, tokenizer: Any, make_llama: Callable[..., Any]
) -> None:
    model = adapted(make_llama(len(tokenizer), attention_bias=bias, mlp_bias=bias), **settings)
    assert why_not(model) is not None, "the lean forward pass would leave out what it does"
    with pytest.raises(UnusableModelError, match=r"the adapter 'default' of .*_proj can't be merged into its weights"):
        list(merged_weights(model))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda name: name.replace("q_proj", "w_q"), r"no parameter '.*w_q\.weight' \(did you mean '.*_proj\.weight'"),
        (lambda name: None if name.endswith("norm.weight") else name, r"no new weights came for .*norm\.weight"),
    ],
)
def test_a_copy_refuses_weights_that_are_not_its_own(
    change: Callable[[str], str | None], words: str, tokenizer: Any, make_llama: Callable[..., Any]
) -> None:
    model = make_llama(len(tokenizer))
    engine = CopyEngine(model, tokenizer, torch.float32)
    weights = [(change(name), tensor) for name, tensor in merged_weights(model)]
    with pytest.raises(ValueError, match=words):
        engine.update_weights(((name, tensor) for name, tensor in weights if name is not None), 1)


def test_an_engine_without_token_ids_is_refused(
    tokenizer: Any, make_llama: Callable[..., Any], prompt_file: str
) -> None:
    class TextOnly:
        name = "text"

        def generate(self, prompts: Any, decoding: Any, seeds: Any) -> list[Turn]:
            return [Turn("left" if seed[0] % 2 else "right") for seed in seeds]

        def update_weights(self, weights: Any, version: int) -> None:
            for _ in weights:
                pass

    with pytest.raises(RolloutError, match="no token ids"):
        MSGRPOTrainer(
            make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", replace(CONFIG, prompt_file=prompt_file),
            engine=TextOnly(), quiet=True,
        )  # fmt: skip


def test_a_failing_engine_is_refused_before_the_first_episode(
    tokenizer: Any, make_llama: Callable[..., Any], prompt_file: str
) -> None:
    class Down:
        name = "down"

        def generate(self, prompts: Any, decoding: Any, seeds: Any) -> list[Turn]:
            return [Turn("", error="connection refused") for _ in prompts]

        def update_weights(self, weights: Any, version: int) -> None:
            list(weights)

    with pytest.raises(RolloutError, match="connection refused"):
        MSGRPOTrainer(
            make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", replace(CONFIG, prompt_file=prompt_file),
            engine=Down(), quiet=True,
        )  # fmt: skip
