"""Generation: how often the host waits, what an adapter costs in memory, and vLLM beside our own."""

import gc
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from recipe_cost import Shape

from agents import Turn
from agents.models import Decoding, TransformersModel
from agents.models.local.decoding import Sampled, common_prefix, sample
from agents.models.local.forward import CausalAttention, Packing, hidden_states, logits, read_weights
from agents.msgrpo import TokenRow
from agents.msgrpo.learner import TokenScorer, pack, score_rows
from gpu_checks.machine import bytes_beside, clock, count_synchronisations
from gpu_checks.models import frozen_lake_prompts, random_model, word_tokenizer

ROWS = 32
_VLLM_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}


def waits(shape: Shape, dtype: torch.dtype, device: torch.device, tokens: int) -> dict[str, float]:
    """Synchronisations of the host with the device for every token of a batch, the start of it counted apart."""
    _, made = _decoding(shape, dtype, device, tokens)

    def count(length: int) -> int:
        with count_synchronisations(device) as counts:
            made(length, look_every=8)  # as on a GPU wherever this runs
        return sum(counts.values())

    count(8)
    few, many = count(16), count(tokens)
    return {"per_token": (many - few) / (tokens - 16), "of_a_batch_besides": few - 16 * (many - few) / (tokens - 16)}


def recorded(shape: Shape, dtype: torch.dtype, device: torch.device, tokens: int) -> dict[str, float]:
    """Return seconds a token with and without recorded steps, and how far the log-probabilities are apart."""
    decoder, made = _decoding(shape, dtype, device, tokens)
    found: dict[str, float] = {"rows": ROWS}
    scores, recorder = {}, decoder.recorder
    for name, used in (("launched", None), ("recorded", recorder)):
        decoder.recorder = used
        for _ in range(2):  # the first sets libraries up
            started = clock(device)
            scores[name] = made(tokens)
            found[f"{name}_seconds_per_token"] = (clock(device) - started) / tokens
    pairs = [*zip(scores["launched"], scores["recorded"], strict=True)]
    shared = [common_prefix((a.ids, b.ids)) for a, b in pairs]
    found["tokens_alike"] = sum(shared) / (ROWS * tokens)  # rounding may move one across a boundary; then all differ
    found["largest_difference"] = max(
        (
            abs(one - other)
            for (a, b), length in zip(pairs, shared, strict=True)
            for one, other in zip(a.logprobs[:length], b.logprobs[:length], strict=True)
        ),
        default=float("nan"),
    )
    return found


def _decoding(
    shape: Shape, dtype: torch.dtype, device: torch.device, tokens: int
) -> tuple[Any, Callable[..., list[Sampled]]]:
    """Return a decoder, and a function of a length by which it answers all prompts with at most ``tokens``."""
    prompts = frozen_lake_prompts(ROWS)
    player = TransformersModel(random_model(shape, dtype, device), word_tokenizer(prompts))
    decoding, ids = Decoding(1.0, max_tokens=tokens), player.encode(prompts)
    check, seeds = player.stop_check(()), [(row,) for row in range(ROWS)]
    check.is_eos[:] = False  # all rows make all tokens

    def made(length: int, **options: Any) -> list[Sampled]:
        with torch.inference_mode():
            return sample(player.decoder, ids, decoding, seeds, check, [length] * ROWS, **options)

    return player.decoder, made


def adapter_memory(shape: Shape, rank: int, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return what sampling holds beside the weights, adapters merged and as factors, and how far off peft both are."""
    import peft

    model = peft.get_peft_model(
        random_model(shape, dtype, device), peft.LoraConfig(r=rank, target_modules="all-linear")
    ).eval()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    result: dict[str, Any] = {"rank": rank}
    prompt = tuple(range(1, 101))
    with torch.inference_mode():
        wanted = model(input_ids=torch.tensor([prompt], device=device)).logits[0, -1].float().log_softmax(-1)
        for name, fuse in (("merged", True), ("factors", False)):
            weights = read_weights(model, fuse=fuse)
            result[f"bytes_{name}"] = bytes_beside(weights, model)
            packing = Packing([len(prompt)], device)
            ids, attend = torch.tensor(prompt, device=device), CausalAttention(packing)
            hidden = hidden_states(weights, ids, packing.positions, attend, only=packing.last)
            found = logits(weights, hidden)[0].float().log_softmax(-1)
            result[f"largest_difference_{name}"] = float((found - wanted).abs().max())
            del weights
    return result


def beside_vllm(shape: Shape, dtype: torch.dtype, device: torch.device, tokens: int) -> dict[str, Any]:
    """Tokens per second of both on the same prompts, and both samplers' log-probabilities beside the learner's."""
    if find_spec("vllm") is None:
        return {"skipped": "vLLM is not installed: pip install -e '.[vllm]'"}
    if device.type == "cpu":  # what vLLM wants on a CPU, unless it was said already; in this process it starts quickly
        for name, value in _VLLM_ON_CPU.items():
            os.environ.setdefault(name, value)
    from agents.models import VLLMModel

    prompts = frozen_lake_prompts(ROWS)
    tokenizer = word_tokenizer(prompts)
    decoding, seeds = Decoding(1.25, max_tokens=tokens), [(row,) for row in range(ROWS)]
    model = random_model(shape, dtype, device, context=2048)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        own = TransformersModel(model, tokenizer)
        scorer = TokenScorer(model, temperature=1.25, chunk=1024, autocast=None)
        # whole prompts at once: on a CPU seeded requests whose prompt comes in parts end in an error of vLLM's
        settings: dict[str, Any] = {"max_model_len": 2048, "max_num_seqs": ROWS, "max_num_batched_tokens": ROWS * 1024}
        settings["enforce_eager"] = device.type != "cuda"
        if device.type == "cuda":  # the model here stays in memory, for the comparison
            settings["gpu_memory_utilization"] = 0.4
        vllm = VLLMModel(folder, chat=False, engine=settings | {"dtype": str(dtype).removeprefix("torch.")})
        for name, player in (("own", own), ("vllm", vllm)):
            player.generate(prompts, decoding, seeds)
            started = clock(device)
            completions = player.generate(prompts, decoding, seeds)
            made = sum(len(each.response_ids or ()) for each in completions)
            result[f"{name}_tokens_per_second"] = made / (clock(device) - started)
            result |= {f"{name}_{key}": value for key, value in _mismatch(scorer, completions).items()}
        del vllm
    gc.collect()
    return result


def _mismatch(scorer: TokenScorer, completions: list[Turn]) -> dict[str, float]:
    """Return how far a sampler's log-probabilities are from the learner's, in nats per token."""
    rows = [TokenRow(tuple(each.prompt_ids or ()), tuple(each.response_ids or ())) for each in completions]
    batches = pack(rows, packing="rows", micro_batch_tokens=8192, tree_tokens=1)
    learner = torch.cat([each.double().cpu() for each in score_rows(scorer, rows, batches)])
    sampler = torch.tensor([each for one in completions for each in one.logprobs or ()], dtype=torch.float64)
    difference = (learner - sampler).abs()
    return {"mismatch_mean": float(difference.mean()), "mismatch_max": float(difference.max())}
