"""How fast a training iteration is, beside TRL's GRPOTrainer in the same run, and how far from what the machine can do.

    python research/perf/training.py                      # everything, a few minutes on two cores
    python research/perf/training.py --only iteration     # or: generation, memory
    python research/perf/training.py --model smollm2      # or gguf:PATH, or a model's folder

* **iteration**: rollout and update of Frozen Lake. The episodes are a scripted player's, recorded once: what is asked
  at every step, and what was answered. Both sides sample as many tokens to the same prompts as were answered, and learn
  from the same answers, with LoRA of rank 16 and products in the same type. So neither depends on what the model says,
  and each side's peak memory is that of a process of its own. TRL takes micro-batches of 8 responses. It plays through
  ``rollout_func``, by ``model.generate`` in lock step, and one group alone, as four of a pretrained model took more
  than 20 GiB: nothing of it is shared, so its time grows with the episodes. The floor is the time that the matrix
  products alone take, measured at their shapes by ``torch.mm`` in the same type and with as many threads: the prompts'
  tree once, every sampled token, forward and backward of the update.
* **generation**: as many tokens to the same prompts by this package, transformers and, of a GGUF file, llama.cpp.
* **memory**: peak memory of an update above weights and optimiser, for vocabularies of 32k and 152k and growing numbers
  of tokens, with chunks and with whole logits.

Times are CPU seconds of all threads, so that other load on the machine doesn't change the ratios, and wall-clock ones.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from agents import PromptMap, TurnRequest
from agents.models import Decoding, LegalAnswers, TransformersModel, load_model
from agents.models.local.decoding import LeanDecoder, sample
from agents.msgrpo import MSGRPOConfig, TokenRow
from agents.msgrpo.learner import (
    Learner,
    Processes,
    TokenScorer,
    autocast_dtype,
    choose_ways,
    make_optimizer,
    prepare_model,
    product_dtype,
)
from textgames import SCENARIOS

GROUPS, SIZE = 4, 8
TRLS_GROUPS = 1
WAYS = ("left", "down", "right", "up")
RANK, MICRO_BATCH = 16, 8
TOKENS = 16  # to each of 32 prompts, if generation alone is looked at
Ids = tuple[int, ...]


class Clock:
    """CPU seconds of this process, wall-clock seconds, and what they were at the start."""

    def __init__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def read(self) -> list[float]:
        return [time.process_time() - self.cpu, time.perf_counter() - self.wall]


class Played(NamedTuple):
    """Steps in lock step: the prompts of all live episodes, and their answers."""

    prompts: list[list[Ids]]
    answers: list[list[Ids]]

    def rows(self) -> list[tuple[Ids, Ids]]:
        """Return all pairs, as many as whole groups of TRL need."""
        pairs = [pair for step in zip(*self, strict=True) for pair in zip(*step, strict=True)]
        return pairs[: len(pairs) // SIZE * SIZE]


def play(model: TransformersModel, groups: int = GROUPS) -> Played:
    """Return episodes of Frozen Lake whose player goes right or down four times of five."""
    prompt_map = PromptMap("direct")
    lanes = []
    for seed in range(groups * SIZE):
        env = SCENARIOS["frozen-lake"].make()
        observation, info = env.reset(seed=seed, options={"layout_seed": seed // SIZE})
        lanes.append((env, observation, info, np.random.default_rng(seed)))
    asked, answered = [], []
    for left in range(SCENARIOS["frozen-lake"].horizon, 0, -1):
        if not lanes:
            break
        prompts, answers, going = [], [], []
        for env, observation, info, rng in lanes:
            rules = env.unwrapped.instructions
            request = TurnRequest(observation, rules, legal_actions=info["legal_actions"], steps_left=left)
            prompts.append(prompt_map(request))
            answers.append(f"<action>{rng.choice(WAYS, p=[0.1, 0.4, 0.4, 0.1])}</action>")
            observation, _, terminated, truncated, info = env.step(answers[-1])
            if not (terminated or truncated):
                going.append((env, observation, info, rng))
        asked.append(model.encode(prompts))
        answered.append([tuple(ids) for ids in model.tokenizer(answers, add_special_tokens=False)["input_ids"]])
        lanes = going
    return Played(asked, answered)


def our_part(source: str, dtype: str) -> dict[str, Any]:
    """Rollout and update by this package."""
    sampled, tokenizer = load(source, dtype)
    player, decoder = TransformersModel(sampled, tokenizer), LeanDecoder(sampled)
    played = play(player)
    clock = Clock()
    for prompts, answers in zip(*played, strict=True):
        sampled_for(decoder, prompts, max(map(len, answers)))
    rollout, read = clock.read(), decoder.prefill_tokens
    decoder.forget()
    rules, clock = player.vocabulary.rules(LegalAnswers(WAYS)), Clock()
    for prompts in played.prompts:  # the same prompts, and legal answers to them
        seeds = [(row,) for row in range(len(prompts))]
        player.generate_ids(prompts, Decoding(1.25, max_tokens=16), seeds, rules=[rules] * len(prompts))
    legal = clock.read()

    config = MSGRPOConfig(model=source, dtype=dtype, lora_rank=RANK, temperature=1.0, minibatches=1)
    weights, _ = load(source, "float32")
    model = prepare_model(weights, tokenizer, config)
    learner = make_learner(model, config, autocast_dtype(config))
    rng = np.random.default_rng(0)
    rows = [
        TokenRow(prompt, answer, None, (-1.0,) * len(answer), float(rng.normal()), number, 0)
        for number, (prompt, answer) in enumerate(played.rows())
    ]
    clock = Clock()
    stats = learner.update(rows, np.random.default_rng(0), 1e-6)
    more = {"read": read, "learnt": stats.computed_tokens, "peak": peak()}
    return {"rollout": rollout, "legal": legal, "update": clock.read(), **more}


def trl_part(source: str, dtype: str) -> dict[str, Any]:
    """Rollout and update by TRL, on the same work as :func:`our_part`."""
    import warnings

    import peft
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    warnings.simplefilter("ignore")
    model, tokenizer = load(source, "float32")
    played, half = play(TransformersModel(model, tokenizer), TRLS_GROUPS), dtype == "bfloat16"
    rows = played.rows()
    times: dict[str, list[float]] = {}

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        clock = Clock()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=half):
            for step, answers in zip(*played, strict=True):
                generate(trainer.model, tokenizer, step, max(map(len, answers)))
        times["rollout"] = clock.read()
        return {
            "prompt_ids": [list(prompt) for prompt, _ in rows],
            "completion_ids": [list(answer) for _, answer in rows],
            "logprobs": None,
            "gain": np.random.default_rng(0).normal(size=len(rows)).tolist(),
        }

    def reward(completions: Any, gain: list[float], **others: Any) -> list[float]:
        return gain

    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=MICRO_BATCH, num_generations=SIZE, use_cpu=True,
        gradient_accumulation_steps=len(rows) // MICRO_BATCH, max_steps=1, max_completion_length=16, temperature=1.0,
        beta=0.0, bf16=half, learning_rate=1e-6, report_to="none", save_strategy="no", disable_tqdm=True,
        gradient_checkpointing=False, shuffle_dataset=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model, args=settings, processing_class=tokenizer, reward_funcs=reward, rollout_func=rollout,
        train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(len(rows) // SIZE)]}),
        peft_config=peft.LoraConfig(r=RANK, lora_alpha=32, target_modules="all-linear"),
    )  # fmt: skip
    clock = Clock()
    trainer.train()
    whole = clock.read()
    update = [total - part for total, part in zip(whole, times["rollout"], strict=True)]
    read = sum(len(prompt) for step in played.prompts for prompt in step)
    learnt = sum(len(prompt) + len(answer) for prompt, answer in rows)
    return {"rollout": times["rollout"], "update": update, "read": read, "learnt": learnt, "peak": peak()}


class Endless:
    """No row ends by itself: as many tokens as were answered, whatever the model says."""

    def ended(self, ids: Any, rows: Any, length: int) -> Any:
        return np.zeros(len(rows), bool)


@torch.inference_mode()
def sampled_for(decoder: LeanDecoder, prompts: list[Ids], tokens: int) -> None:
    """Sample so many tokens to every prompt, as the live engine does."""
    seeds = [(row,) for row in range(len(prompts))]
    sample(decoder, prompts, Decoding(1.0, max_tokens=tokens), seeds, Endless(), [tokens] * len(prompts))


def load(source: str, dtype: str) -> tuple[Any, Any]:
    return load_model(source, dtype=dtype, device="cpu")


def generate(model: Any, tokenizer: Any, prompts: list[Ids], tokens: int) -> None:
    """``model.generate`` of exactly so many tokens for all prompts at once."""
    longest, pad = max(map(len, prompts)), tokenizer.pad_token_id or 0
    ids = torch.tensor([[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=True,
        temperature=1.0, top_k=0, top_p=1.0, pad_token_id=pad,
    )  # fmt: skip


def peak() -> float:
    """MiB, the most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------- floor


def floor(source: str, dtype: str) -> dict[str, list[float]]:
    """CPU and wall-clock seconds of the matrix products alone."""
    model, tokenizer = load(source, dtype)
    played, shape = play(TransformersModel(model, tokenizer)), model.config
    prompts = {prompt for step in played.prompts for prompt in step}
    pairs = played.rows()
    tree = {prompt[:end] for prompt in prompts for end in range(1, len(prompt) + 1)}
    whole = {(*prompt, *answer)[:end] for prompt, answer in pairs for end in range(1, len(prompt) + len(answer))}
    scored = {(*prompt, *answer)[:end] for prompt, answer in pairs
              for end in range(len(prompt) + 1, len(prompt) + len(answer) + 1)}  # fmt: skip
    width, inner, kv = shape.hidden_size, shape.intermediate_size, shape.num_key_value_heads * shape.head_dim
    maps = [(width, width + 2 * kv), (width, width), (width, 2 * inner), (inner, width)]
    kind = getattr(torch, dtype)
    layers = [[torch.randn(columns, rows).to(kind) for columns, rows in maps] for _ in range(shape.num_hidden_layers)]
    head = torch.randn(width, shape.vocab_size).to(kind)
    reading = pass_seconds(layers, None, len(tree))
    decoding = [0.0, 0.0]
    for answers in played.answers:
        for _ in range(max(map(len, answers)) - 1):
            decoding = add(decoding, pass_seconds(layers, head, len(answers)))
        decoding = add(decoding, pass_seconds([], head, len(answers)))
    # backward: a product for the inputs' gradients; the frozen weights have none. The head is computed in float32,
    # forward, again, and backward
    forward = pass_seconds(layers, None, len(whole))
    scores = pass_seconds([], head.float(), len(scored))
    update = add(forward, forward, scores, scores, scores)
    return {"rollout": add(reading, decoding), "update": update}


def pass_seconds(layers: list[list[torch.Tensor]], head: torch.Tensor | None, tokens: int) -> list[float]:
    """Return how long so many tokens take through the products, at most 2,048 at a time."""
    matrices = [matrix for layer in layers for matrix in layer] + ([] if head is None else [head])
    inputs = {(m.shape[0], m.dtype): torch.randn(min(tokens, 2048), m.shape[0]).to(m.dtype) for m in matrices}
    clock = Clock()
    for matrix in matrices:
        torch.mm(inputs[matrix.shape[0], matrix.dtype], matrix)
    return [seconds * max(1.0, tokens / 2048) for seconds in clock.read()]


def add(*parts: list[float]) -> list[float]:
    return [sum(each) for each in zip(*parts, strict=True)]


# ---------------------------------------------------------------- generation


def generation(
    source: str, dtype: str, file: Path | None, count: int = 32, tokens: int = TOKENS
) -> dict[str, list[float]]:
    """Return seconds of as many tokens to the first prompts by this package, transformers and llama.cpp."""
    model, tokenizer = load(source, dtype)
    played, decoder = play(TransformersModel(model, tokenizer)), LeanDecoder(model)
    distinct = list(dict.fromkeys(prompt for step in played.prompts for prompt in step))[:count]
    times = {}
    for _ in range(2):  # the first one warms up
        decoder.forget()
        clock = Clock()
        sampled_for(decoder, distinct, tokens)
        times["textbench"] = clock.read()
        clock = Clock()
        with torch.no_grad():
            generate(model, tokenizer, distinct, tokens)
        times["transformers.generate"] = clock.read()
    if file is not None and find_spec("xllamacpp") is not None:
        times["llama.cpp, the file as it is"] = llama_cpp(file, distinct, tokens)
    return times


def llama_cpp(file: Path, prompts: list[Ids], tokens: int) -> list[float]:
    """Eight requests at a time, as its server has slots; its threads wait by spinning, which is CPU time as well."""
    from concurrent.futures import ThreadPoolExecutor

    import xllamacpp  # type: ignore[import-untyped, unused-ignore]

    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.cpuparams.n_threads = str(file), torch.get_num_threads()
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = 16_384, 8, -1
    server = xllamacpp.Server(parameters)

    def ask(prompt: Ids) -> None:
        asked = {"prompt": list(prompt), "n_predict": tokens, "temperature": 1.0, "top_k": 0, "ignore_eos": True}
        server.handle_completions({**asked, "cache_prompt": True})

    ask(prompts[0])
    clock = Clock()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, prompts))
    return clock.read()


# ---------------------------------------------------------------- memory


def random_llama(vocabulary: int, hidden: int = 64, layers: int = 2) -> Any:
    """Return a random model whose head is most of it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
        )
    )


def make_learner(model: Any, config: MSGRPOConfig, autocast: Any = None) -> Learner:
    """Return a learner without a game around it."""
    scorer = TokenScorer(model, temperature=1.0, chunk=config.logprob_chunk_tokens, autocast=autocast)
    packing, processes = choose_ways(scorer, config.packing), Processes()
    optimizer = processes.prepare(scorer, make_optimizer(model, config))
    return Learner(scorer, optimizer, config, processes, packing=packing)


def random_rows(tokens: int, vocabulary: int, prompt: int = 32, response: int = 32) -> list[TokenRow]:
    """Return rows that share nothing, of ``tokens`` response tokens together."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(tokens // response):
        ids = rng.integers(0, vocabulary, prompt + response).tolist()
        old = tuple([-float(np.log(vocabulary))] * response)
        rows.append(TokenRow(tuple(ids[:prompt]), tuple(ids[prompt:]), None, old, float(rng.normal()), i, 0))
    return rows


def peak_of_an_update(vocabulary: int, tokens: int, *, whole_logits: bool) -> tuple[float, float]:
    """MiB above what stays allocated, and seconds, of one update in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(measure_peak, vocabulary, tokens, whole_logits).result()


def measure_peak(vocabulary: int, tokens: int, whole_logits: bool) -> tuple[float, float]:
    """In the child: warm up so that weights, gradients and optimiser state exist, then watch one update."""
    torch.set_num_threads(2)
    config = MSGRPOConfig(minibatches=1, packing="rows", micro_batch_tokens=4096, logprob_chunk_tokens=128)
    learner = make_learner(random_llama(vocabulary), config)
    if whole_logits:
        learner.scorer.head = "logits"
    learner.update(random_rows(32, vocabulary), np.random.default_rng(0), 1e-6)
    rows = random_rows(tokens, vocabulary)
    if whole_logits:
        learner.config = replace(config, micro_batch_tokens=10**9)
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = resident("VmRSS")
    started = time.process_time()
    learner.update(rows, np.random.default_rng(0), 1e-6)
    return (resident("VmHWM") - before) / 2**20, time.process_time() - started


def resident(field: str) -> int:
    """Return how many bytes of memory this process holds, as the kernel says."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def memory_table() -> None:
    """Print peaks for two vocabularies."""
    print("\nMemory: peak MiB of an update above weights, gradients and optimiser state (chunks of 128 rows)")
    print(f"{'response tokens':>16}{'32k':>10}{'s':>7}{'152k':>10}{'s':>7}{'32k logits':>13}{'152k logits':>13}")
    for tokens in (1024, 2048, 4096, 8192):
        small, big = (peak_of_an_update(v, tokens, whole_logits=False) for v in (32_000, 152_000))
        line = f"{tokens:16}{small[0]:10.0f}{small[1]:7.1f}{big[0]:10.0f}{big[1]:7.1f}"
        for v in (32_000, 152_000):
            size = tokens * v * 4 / 2**20
            line += f"{size:12.0f}*"
        print(line)
    whole = peak_of_an_update(32_000, 1024, whole_logits=True)
    print("* float32 logits of that many tokens alone; with whole logits the update of 1024 tokens at 32k takes "
          f"{whole[0]:.0f} MiB")  # fmt: skip


# ---------------------------------------------------------------- tables


def run_part(part: str, source: str, threads: str, dtype: str) -> Any:
    options = {"--part": part, "--model": source, "--threads": threads, "--dtype": dtype}
    command = [sys.executable, str(Path(__file__).resolve()), *(word for pair in options.items() for word in pair)]
    # what PyTorch does in the backward pass has its number of threads from the environment
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def iteration_table(source: str, threads: str, dtype: str) -> None:
    """Print an iteration of both trainers; each part is measured in a process of its own."""
    ours, trl, least = (run_part(part, source, threads, dtype) for part in ("ours", "trl", "floor"))
    print(f"\nIteration of {source}: LoRA {RANK}, {dtype}, {threads} threads; seconds per episode of Frozen Lake")
    heads = (
        f"{'episodes':>9}{'CPU':>8}{'wall':>8}{'rollout':>9}{'update':>8}{'prompt tokens':>15}{'learnt':>9}{'MiB':>7}"
    )
    print(f"{'':16}{heads}")
    totals = {}
    for name, figures, groups in (("textbench", ours, GROUPS), ("TRL", trl, TRLS_GROUPS), ("products", least, GROUPS)):
        episodes = groups * SIZE
        rollout, update = ([seconds / episodes for seconds in figures[part]] for part in ("rollout", "update"))
        totals[name], wall = add(rollout, update)
        line = f"{name:16}{episodes:9}{totals[name]:8.3f}{wall:8.3f}{rollout[0]:9.3f}{update[0]:8.3f}"
        if "peak" in figures:
            line += f"{figures['read'] / episodes:15.0f}{figures['learnt'] / episodes:9.0f}{figures['peak']:7.0f}"
        print(line)
    print(
        f"TRL takes {totals['TRL'] / totals['textbench']:.1f} times as long per episode; the products alone take "
        f"{totals['products'] / totals['textbench']:.0%} of our time"
    )
    print(f"Held to legal answers, textbench's rollout takes {ours['legal'][0] / (GROUPS * SIZE):.3f} CPU seconds")


def generation_table(source: str, threads: str, dtype: str) -> None:
    print(f"\nGeneration: {TOKENS} tokens to each of 32 prompts")
    for name, (cpu, wall) in run_part("generation", source, threads, dtype).items():
        print(f"{name:32}{32 * TOKENS / cpu:9.0f} tokens per CPU second{32 * TOKENS / wall:9.0f} per second")


PARTS: dict[str, Callable[[str, str], Any]] = {"ours": our_part, "trl": trl_part, "floor": floor}


def measure_part(part: str, source: str, threads: int, dtype: str) -> None:
    """Measure one part in this process, for :func:`run_part`."""
    torch.set_num_threads(threads)
    file = None
    if part == "generation" and source.startswith("gguf:"):
        file = Path(source.removeprefix("gguf:"))
    elif part == "generation" and source == "smollm2":
        from agents.models import smollm2_file

        file = Path(smollm2_file())
    print(json.dumps(PARTS.get(part, partial(generation, file=file))(source, dtype)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("iteration", "generation", "memory"))
    parser.add_argument("--model", help="a model's folder (by default a tiny one is made), smollm2 or gguf:PATH")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), help="of products (what is fast here, and float32 of a tiny model)"
    )
    parser.add_argument("--part", choices=(*PARTS, "generation"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    dtype = options.dtype or (product_dtype(MSGRPOConfig()) if options.model else "float32")
    if options.part:
        measure_part(options.part, options.model, options.threads, dtype)
        return
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None and options.only != "memory":
            from agents.tiny import Recipe, pretrain, save

            made = Recipe.quick(hidden_size=128, intermediate_size=352, steps=1, examples=100)
            save(pretrain(made), Path(folder, "tiny"))
        what = options.model or str(Path(folder, "tiny")), str(options.threads), dtype
        if options.only in (None, "iteration"):
            iteration_table(*what)
        if options.only in (None, "generation"):
            generation_table(*what)
    if options.only in (None, "memory"):
        memory_table()


if __name__ == "__main__":
    main()
