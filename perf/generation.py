"""Generation: textbench's sampler against ``model.generate`` of transformers, on the prompts of one Frozen Lake batch.

    python perf/generation.py [--batch 128] [--hidden 128] [--layers 4] [--threads 2] [--tokens 48] [--device cpu]

Everything is measured in this one run, interleaved, the median of several repetitions. Both sides get the same model,
the same prompts and the same number of tokens per row (no row stops early), so tokens per second can be compared; a
second comparison lets rows stop at ``</action>``, as they do in games. Below them stand the rates that bound decoding:
the matrix products of one decoding step alone, at their shapes, and copying memory.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from agents.models.base import Decoding
from agents.models.tiny_lm.imitation import demonstrate, make_model, make_tokenizer
from agents.models.tiny_lm.recipe import Recipe
from agents.models.transformers import TransformersModel
from agents.prompt import PromptMap
from agents.turn import Prompt, TurnRequest
from textgames.scenarios import SCENARIOS


def frozen_lake_prompts(count: int) -> list[Prompt]:
    """One prompt per map, all different."""
    scenario = SCENARIOS["frozen-lake"]
    game = scenario.game()
    prompts: dict[Prompt, None] = {}
    seed = 0
    while len(prompts) < count:
        state = game.initial_state(np.random.default_rng(seed))
        request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), game.actions)
        prompts[PromptMap()(request)] = None
        seed += 1
    return list(prompts)


def median_seconds(runs: dict[str, Callable[[], object]], repetitions: int, device: str) -> dict[str, float]:
    """Median wall-clock seconds of each, interleaved so that a busy machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repetition in range(repetitions + 1):
        for name, run in runs.items():
            _wait(device)
            started = time.perf_counter()
            run()
            _wait(device)
            if repetition:  # the first one warms up
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def huggingface(model: TransformersModel, prompts: list[Prompt], tokens: int, *, stop: bool) -> Callable[[], object]:
    """``model.generate`` with left padding, sampling at temperature 1."""
    tokenizer = model.tokenizer
    tokenizer.padding_side = "left"
    texts = [model.render(prompt) for prompt in prompts]

    def run() -> object:
        batch = tokenizer(texts, return_tensors="pt", padding=True).to(model.device)
        batch.pop("token_type_ids", None)
        settings = {"stop_strings": ["</action>"], "tokenizer": tokenizer} if stop else {"min_new_tokens": tokens}
        out = model.model.generate(
            **batch, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=tokens, **settings
        )
        return tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :])

    return run


def ours(model: TransformersModel, prompts: list[Prompt], tokens: int, *, stop: bool) -> Callable[[], object]:
    """The same through :meth:`TransformersModel.generate`; what is kept between calls is dropped before each."""
    decoding = Decoding(temperature=1.0, max_tokens=tokens, stop=("</action>",) if stop else ())
    seeds = [(row,) for row in range(len(prompts))]
    eos = model._eos_ids

    def run() -> object:
        forget = getattr(model.decoder, "forget", None)
        if forget is not None:
            forget()
        model._encoded.clear()
        # without stops rows must not end at the end-of-sequence token either, as min_new_tokens forbids it there
        model._eos_ids = eos if stop else frozenset()
        model._checks.clear()
        return model.generate(prompts, decoding, seeds)

    return run


def products_of_a_step(model: TransformersModel, batch: int) -> tuple[list[Callable[[], object]], float]:
    """The matrix products of one decoding step on ``batch`` rows, with nothing around them, and their operations."""
    from agents.models.llama_forward import read_weights

    with torch.no_grad():
        weights = read_weights(model.model)
    maps = [m for layer in weights.layers for m in (*layer.qkv, layer.out, *layer.gate_up, layer.down)]
    maps.append(weights.head)
    jobs: list[Callable[[], object]] = []
    for one in maps:
        x = torch.randn(batch, one.weight.shape[1], device=one.weight.device, dtype=one.weight.dtype)
        jobs.append(partial(torch.nn.functional.linear, x, one.weight.detach()))
    return jobs, 2.0 * batch * sum(m.weight.numel() for m in maps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("batch", 128), ("hidden", 128), ("layers", 4), ("heads", 4), ("threads", 2), ("tokens", 48)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--intermediate", type=int, default=384)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    recipe = Recipe(
        games=("frozen-lake",), examples=4000, hidden_size=options.hidden, layers=options.layers, heads=options.heads,
        intermediate_size=options.intermediate,
    )  # fmt: skip
    tokenizer = make_tokenizer(demonstrate(recipe))
    inner = make_model(recipe, tokenizer).to(options.device, getattr(torch, options.dtype)).eval()
    model = TransformersModel(inner, tokenizer, name="random weights")
    generic = TransformersModel(inner, tokenizer, name="random weights", lean=False)
    prompts = frozen_lake_prompts(options.batch)
    lengths = [len(ids) for ids in model.encode(prompts)]
    parameters = sum(p.numel() for p in inner.parameters())
    print(f"model    Llama, {parameters:,} parameters, {options.dtype}, {options.device}, {options.threads} threads")
    print(
        f"prompts  {options.batch} different, {min(lengths)} to {max(lengths)} tokens; {options.tokens} new tokens each"
    )

    grouped = [prompts[row // 16] for row in range(options.batch)]
    print("\ntokens per second                                    transformers  generic forward  textbench  ratio")
    for title, asked in (("different prompts", prompts), ("groups of 16 equal prompts", grouped)):
        with torch.no_grad():
            seconds = median_seconds(
                {
                    "transformers": huggingface(model, asked, options.tokens, stop=False),
                    "generic": ours(generic, asked, options.tokens, stop=False),
                    "textbench": ours(model, asked, options.tokens, stop=False),
                },
                options.repetitions,
                options.device,
            )
        made = options.batch * options.tokens
        rates = {name: made / value for name, value in seconds.items()}
        print(
            f"{title:50} {rates['transformers']:14,.0f} {rates['generic']:16,.0f} {rates['textbench']:10,.0f} "
            f"{rates['textbench'] / rates['transformers']:6.2f}"
        )
        if asked is prompts:
            whole = seconds["textbench"]

    with torch.no_grad():
        first = median_seconds({"one": ours(model, prompts, 1, stop=False)}, options.repetitions, options.device)["one"]
        jobs, operations = products_of_a_step(model, options.batch)
        big = torch.empty(2**26, device=options.device)  # 256 MiB, beyond every cache
        other = torch.empty_like(big)
        bounds = median_seconds(
            {"products": lambda: [job() for job in jobs], "copy": lambda: other.copy_(big)},
            20,
            options.device,
        )
    step = (whole - first) / (options.tokens - 1)
    dim = options.hidden // options.heads
    kv_bytes = model.decoder.bytes_per_token() * options.batch * (max(lengths) + options.tokens / 2)
    copy_rate = 2 * big.numel() * 4 / bounds["copy"]
    print(f"\nprefill and first token   {first * 1e3:8.2f} ms ({sum(lengths) / first:,.0f} prompt tokens/s)")
    print(f"one decoding step         {step * 1e3:8.2f} ms ({options.batch / step:,.0f} tokens/s)")
    print(
        f"its matrix products alone {bounds['products'] * 1e3:8.2f} ms "
        f"({operations / bounds['products'] / 1e9:,.1f} GFLOP/s at these shapes): "
        f"{bounds['products'] / step:.0%} of the step"
    )
    print(
        f"memory                    {copy_rate / 1e9:8.1f} GB/s copied; reading all keys and values unshared "
        f"({options.heads} heads of {dim}) would take {kv_bytes / copy_rate * 1e3:.2f} ms"
    )


if __name__ == "__main__":
    main()
