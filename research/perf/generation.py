"""Generation: textbench's sampler against ``model.generate`` of transformers, on the prompts of one Frozen Lake batch.

    python research/perf/generation.py [--batch 128] [--hidden 128] [--layers 4] [--kv-heads 1] [--threads 2]
                                          [--tokens 48]

Everything is measured in this one run, interleaved, the median of several repetitions; both sides get the same model
and the same prompts, tokenization included.

* Random weights, a fixed number of tokens per row, no row stops early.
* The model that ships with the package (``--model DIR`` for another), rows stop as they do in games: here at
  ``</action>``, there at the end-of-sequence token that the model writes next; only tokens up to ``</action>`` count.

Below stand the rates that bound decoding: the matrix products of one decoding step alone, at their shapes, and memory.
``--clock cpu`` counts this process's CPU time, for machines that are busy with other things (use ``--threads 1``).
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agents
from agents import Prompt, PromptMap, TurnRequest
from agents.models import Decoding, TransformersModel
from agents.models.local.decoding import LeanDecoder
from agents.tiny import Recipe, demonstrate, make_model, make_tokenizer
from textgames import SCENARIOS

SHIPPED = Path(agents.__file__).parent / "tiny" / "weights" / "tiny"


def frozen_lake_prompts(count: int) -> list[Prompt]:
    """Return a prompt for each map, all different."""
    scenario = SCENARIOS["frozen-lake"]
    game = scenario.game()
    prompt_map = PromptMap.from_file("without-clock")  # which the shipped model reads
    prompts: dict[Prompt, None] = {}
    seed = 0
    while len(prompts) < count:
        state = game.initial_state(np.random.default_rng(seed))
        request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), game.actions)
        prompts[prompt_map(request)] = None
        seed += 1
    return list(prompts)


def median_seconds(runs: dict[str, Callable[[], object]], options: argparse.Namespace) -> dict[str, float]:
    """Median seconds of each, interleaved so that a busy machine slows all alike."""
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repetition in range(options.repetitions + 1):
        for name, run in runs.items():
            _wait(options.device)
            started = clock()
            run()
            _wait(options.device)
            if repetition:  # the first one warms up
                times[name].append(clock() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def huggingface(model: TransformersModel, prompts: list[Prompt], tokens: int, *, stop: bool) -> Callable[[], object]:
    """Return ``model.generate`` with left padding, sampling at temperature 1."""
    tokenizer = model.tokenizer
    tokenizer.padding_side = "left"
    texts = [model.render(prompt) for prompt in prompts]

    def run() -> object:
        batch = tokenizer(texts, return_tensors="pt", padding=True).to(model.device)
        batch.pop("token_type_ids", None)
        settings = {} if stop else {"min_new_tokens": tokens}
        out = model.model.generate(
            **batch, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=tokens, **settings
        )
        return tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :])

    return run


def ours(model: TransformersModel, prompts: list[Prompt], tokens: int, *, stop: bool) -> Callable[[], object]:
    """Generate by :meth:`TransformersModel.generate`; what is kept between calls is dropped before each."""
    decoding = Decoding(temperature=1.0, max_tokens=tokens, stop=("</action>",) if stop else ())
    seeds = [(row,) for row in range(len(prompts))]
    eos = model._reader.eos_ids

    def run() -> object:
        if isinstance(model.decoder, LeanDecoder):
            model.decoder.forget()
        model._reader._encoded.clear()
        # without stops rows must not end at the end-of-sequence token either, as min_new_tokens forbids it there
        model._reader.eos_ids = eos if stop else frozenset()
        model._reader._checks.clear()
        return model.generate(prompts, decoding, seeds)

    return run


def products_of_a_step(model: TransformersModel, batch: int) -> tuple[list[Callable[[], object]], float]:
    """Return the matrix products of one decoding step on ``batch`` rows, with nothing around them, and their
    operations."""
    from agents.models.local.forward import read_weights

    with torch.no_grad():
        weights = read_weights(model.model)
    maps = [m for layer in weights.layers for m in (*layer.qkv, layer.out, *layer.gate_up, layer.down)]
    maps.append(weights.head)
    jobs: list[Callable[[], object]] = []
    for one in maps:
        x = torch.randn(batch, one.weight.shape[1], device=one.weight.device, dtype=one.weight.dtype)
        jobs.append(partial(torch.nn.functional.linear, x, one.weight.detach()))
    return jobs, 2.0 * batch * sum(m.weight.numel() for m in maps)


def compare(title: str, inner: Any, tokenizer: Any, prompts: list[Prompt], options: argparse.Namespace) -> float:
    """Return one line: tokens per second of the three ways; returns the seconds of ours."""
    stop = options.stop
    lean = TransformersModel(inner, tokenizer, name="lean")
    generic = TransformersModel(inner, tokenizer, name="generic", lean=False)
    made = options.batch * options.tokens
    if stop:
        rows = lean.generate(prompts, Decoding(1.0, max_tokens=options.tokens), [(k,) for k in range(len(prompts))])
        made = sum(len(row.response_ids or ()) for row in rows)
    with torch.no_grad():
        seconds = median_seconds(
            {
                "transformers": huggingface(lean, prompts, options.tokens, stop=stop),
                "generic": ours(generic, prompts, options.tokens, stop=stop),
                "textbench": ours(lean, prompts, options.tokens, stop=stop),
            },
            options,
        )
    print(
        f"{title:44}"
        + "".join(f"{made / seconds[name]:14,.0f}" for name in seconds)
        + f"{seconds['transformers'] / seconds['textbench']:8.2f}x"
    )
    return seconds["textbench"]


def bounds(model: TransformersModel, prompts: list[Prompt], whole: float, options: argparse.Namespace) -> None:
    """What a decoding step costs, and what its parts would cost alone."""
    lengths = [len(ids) for ids in model.encode(prompts)]
    with torch.no_grad():
        first = median_seconds({"one": ours(model, prompts, 1, stop=False)}, options)["one"]
        jobs, operations = products_of_a_step(model, options.batch)
        big = torch.empty(2**26, device=options.device)  # 256 MiB, beyond every cache
        other = torch.empty_like(big)
        alone = median_seconds(
            {
                "products": lambda: [job() for job in jobs],
                "copy": lambda: other.copy_(big),
            },
            options,
        )
    step = (whole - first) / (options.tokens - 1)
    kv_bytes = model.decoder.bytes_per_token() * options.batch * (sum(lengths) / len(lengths) + options.tokens / 2)
    rate = 2 * big.numel() * 4 / alone["copy"]
    print(f"\nprefill and first token   {first * 1e3:8.2f} ms ({sum(lengths) / first:,.0f} prompt tokens/s)")
    print(f"one decoding step         {step * 1e3:8.2f} ms ({options.batch / step:,.0f} tokens/s)")
    print(
        f"its matrix products alone {alone['products'] * 1e3:8.2f} ms "
        f"({operations / alone['products'] / 1e9:,.1f} GFLOP/s at these shapes): {alone['products'] / step:.0%} of it"
    )
    print(
        f"its memory traffic alone  {kv_bytes / rate * 1e3:8.2f} ms (all keys and values read once at the "
        f"{rate / 1e9:.1f} GB/s of a large copy): {kv_bytes / rate / step:.0%} of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (
        *(("batch", 128), ("tokens", 48), ("threads", 2), ("repetitions", 5)),
        *(("hidden", 128), ("intermediate", 432), ("layers", 4), ("heads", 4), ("kv-heads", 1)),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument(
        "--model", default=str(SHIPPED), metavar="DIR", help="a model whose responses end by themselves"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    recipe = Recipe(
        games=("frozen-lake",),
        examples=4000,
        hidden_size=options.hidden,
        intermediate_size=options.intermediate,
        layers=options.layers,
        heads=options.heads,
        kv_heads=options.kv_heads,
    )
    tokenizer = make_tokenizer(demonstrate(recipe))
    inner = make_model(recipe, tokenizer).to(options.device, getattr(torch, options.dtype)).eval()
    model = TransformersModel(inner, tokenizer, name="random weights")
    prompts = frozen_lake_prompts(options.batch)
    lengths = [len(ids) for ids in model.encode(prompts)]
    parameters = sum(p.numel() for p in inner.parameters())
    print(f"model    Llama, {parameters:,} parameters, {options.dtype}, {options.device}, {options.threads} threads")
    print(f"prompts  {options.batch}, {min(lengths)} to {max(lengths)} tokens; {options.tokens} new tokens each")
    print(f"\ntokens per second ({options.clock} time)".ljust(45) + "  transformers own forward     textbench   ratio")
    options.stop = False
    whole = compare("different prompts", inner, tokenizer, prompts, options)
    grouped = [prompts[row // 16] for row in range(options.batch)]
    compare("groups of 16 equal prompts", inner, tokenizer, grouped, options)
    if Path(options.model).is_dir():
        shipped = TransformersModel.from_pretrained(options.model, device=options.device, dtype=options.dtype)
        options.stop = True
        compare(
            f"rows stop by themselves ({Path(options.model).name})", shipped.model, shipped.tokenizer, prompts, options
        )
    bounds(model, prompts, whole, options)


if __name__ == "__main__":
    main()
