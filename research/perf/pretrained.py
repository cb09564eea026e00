"""A training iteration of a pretrained model beside TRL's GRPOTrainer on the same episodes; training.py runs it.

The episodes are a scripted player's, recorded once: what is asked at every step, and what was answered. Both sides
sample as many tokens to the same prompts as were answered, and learn from the same answers, with LoRA of rank 16 and
products in the same type. So neither depends on what the model says, and each side's peak memory is that of a process
of its own. TRL takes micro-batches of 8 responses. It plays through ``rollout_func``, by ``model.generate`` in lock
step, and one group alone, as four took more than 20 GiB: nothing of it is shared, so its time grows with the episodes.

The floor is the time that the matrix products alone take, measured at their shapes by ``torch.mm`` in the same type and
with as many threads: the prompts' tree once, every sampled token, forward and backward of the update.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
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
    scorer = TokenScorer(model, temperature=1.0, chunk=config.logprob_chunk_tokens, autocast=autocast_dtype(config))
    packing, processes = choose_ways(scorer, config.packing), Processes()
    learner = Learner(
        scorer, processes.prepare(scorer, make_optimizer(model, config)), config, processes, packing=packing
    )
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


# ---------------------------------------------------------------- tables


def tables(source: str, threads: int, dtype: str) -> None:
    """Print everything; each part in a process of its own."""
    found = {part: run_part(part, source, str(threads), dtype) for part in ("ours", "trl", "floor", "generation")}
    ours, trl, least = found["ours"], found["trl"], found["floor"]
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
        line = f"{name:16}{episodes:9}{totals[name]:8.2f}{wall:8.2f}{rollout[0]:9.2f}{update[0]:8.2f}"
        if "peak" in figures:
            line += f"{figures['read'] / episodes:15.0f}{figures['learnt'] / episodes:9.0f}{figures['peak']:7.0f}"
        print(line)
    print(
        f"TRL takes {totals['TRL'] / totals['textbench']:.1f} times as long per episode; the products alone take "
        f"{totals['products'] / totals['textbench']:.0%} of our time"
    )
    print(f"Held to legal answers, textbench's rollout takes {ours['legal'][0] / (GROUPS * SIZE):.2f} CPU seconds")
    print(f"\nGeneration: {TOKENS} tokens to each of 32 prompts")
    for name, (cpu, wall) in found["generation"].items():
        print(f"{name:32}{32 * TOKENS / cpu:9.0f} tokens per CPU second{32 * TOKENS / wall:9.0f} per second")


def run_part(part: str, source: str, threads: str, dtype: str) -> Any:
    command = [sys.executable, str(Path(__file__).resolve()), part, source, threads, dtype]
    # what PyTorch does in the backward pass has its number of threads from the environment
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure one part in this process, for :func:`run_part`."""
    part, source, threads, dtype = sys.argv[1:]
    torch.set_num_threads(int(threads))
    file = None
    if part == "generation" and source.startswith("gguf:"):
        file = Path(source.removeprefix("gguf:"))
    elif part == "generation" and source == "smollm2":
        from agents.models import smollm2_file

        file = Path(smollm2_file())
    parts: dict[str, Callable[[str, str], Any]] = {
        "ours": our_part,
        "trl": trl_part,
        "floor": floor,
        "generation": partial(generation, file=file),
    }
    print(json.dumps(parts[part](source, dtype)))


if __name__ == "__main__":
    main()
