"""How fast a training iteration is, beside TRL's GRPOTrainer in the same run, and how far from what the machine can do.

    python research/perf/training.py                      # everything, a few minutes on two cores
    python research/perf/training.py --only iteration     # or: memory, rate
    python research/perf/training.py --model smollm2      # or gguf:PATH: a pretrained model, by pretrained.py

All times are CPU seconds of all threads of this process, so that other load on the machine doesn't change the ratios.

Three tables:

* **iteration**: rollout and update of Frozen Lake by both trainers, same model, same number of episodes per iteration,
  same decoding. TRL plays through its ``rollout_func``, the closest it offers to this: one
  growing sequence per episode (observations masked from the loss), because a variable number of independent
  prompt-response pairs per episode does not fit its batches. Its generation is ``model.generate`` in lock step over all
  live episodes. Its responses are all of our mean length, cut off whatever they say, because this model was not made
  for growing prompts and would answer with next to nothing; compare the column per generated token. A second line gives
  TRL single-step samples: as many prompts, responses and tokens, all known beforehand, no game at all.
* **memory**: peak memory of an update above weights and optimiser, for vocabularies of 32k and 152k and growing numbers
  of tokens, with chunks and with whole logits.
* **rate**: floating-point rate of the update and of sampling as a share of that of matrix products of the same shapes,
  measured here.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents import PromptMap, TurnRequest, as_text
from agents.models import Decoding
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, TokenRow
from agents.msgrpo.learner import Learner, Processes, TokenScorer, choose_ways, make_optimizer, product_dtype
from textgames import SCENARIOS

GROUPS, GROUP_SIZE, MAX_TOKENS = 8, 8, 40
SCENARIO = "frozen-lake"


# ---------------------------------------------------------------- models


def tiny_model(folder: str | None) -> tuple[Any, Any]:
    """Return a pretrained tiny model, so that episodes look like episodes: from a folder, or made here (about a
    minute)."""
    from agents.models import load_model

    if folder is None:
        from agents.tiny import Recipe, pretrain

        made = pretrain(Recipe.quick(hidden_size=128, intermediate_size=352, steps=200, examples=5_000))
        return made.model, made.tokenizer
    return load_model(folder, dtype="float32", device="cpu", revision=None, adapter=None, trust_remote_code=False)


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


def parameters(model: Any) -> int:
    """Return how many weights a model has; tied ones count once."""
    return sum(p.numel() for p in model.parameters())


# ---------------------------------------------------------------- iteration


def ours(model: Any, tokenizer: Any, iterations: int) -> dict[str, float]:
    """Return seconds and tokens of our iterations, the first left out; every episode is trained on, as TRL does."""
    config = MSGRPOConfig(
        groups=GROUPS, group_size=GROUP_SIZE, episode_sampling="off", minibatches=1,
        max_response_tokens=MAX_TOKENS, temperature=1.0, entropy_coefficient=0.0, learning_rate=1e-6, eval_every=0,
        format_penalty=0.0,
    )  # fmt: skip
    trainer = MSGRPOTrainer(model, tokenizer, SCENARIO, config, quiet=True)
    trainer.iterate()
    started, updates, update = time.process_time(), [], trainer.update

    def timed(*arguments: Any) -> Any:
        begun = time.process_time()
        stats = update(*arguments)
        updates.append(time.process_time() - begun)
        return stats

    trainer.update = timed  # type: ignore[method-assign]
    history = [trainer.iterate() for _ in range(iterations)]
    seconds, updating = (time.process_time() - started) / iterations, sum(updates) / iterations
    names = ("response_tokens", "steps", "episodes", "update_tokens", "update_tokens_computed")
    figures = {name: float(np.mean([h[name] for h in history])) for name in names}
    return figures | {"seconds": seconds, "update_seconds": updating, "rollout_seconds": seconds - updating}


class GrowingEpisodes:
    """TRL's ``rollout_func``: plays every episode as one sequence, prompt and observations and responses in turn."""

    def __init__(self, tokenizer: Any, length: int) -> None:
        self.tokenizer, self.length = tokenizer, length
        self.prompt_map = PromptMap("think")
        self.stop = tokenizer.convert_tokens_to_ids("</action>")
        self.generated = self.steps = 0
        self.seconds = 0.0

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, Any]:
        started = time.process_time()
        lanes = [Lane(self, int(seed), member) for member, seed in enumerate(prompts)]  # each prompt comes repeated
        while live := [lane for lane in lanes if not lane.done]:
            responses = self._generate(trainer.model, [lane.prompt + lane.ids for lane in live])
            for lane, response in zip(live, responses, strict=True):
                lane.step(response)
            self.generated += sum(map(len, responses))
            self.steps += len(live)
        self.seconds += time.process_time() - started
        return {
            "prompt_ids": [lane.prompt for lane in lanes],
            "completion_ids": [lane.ids for lane in lanes],
            "env_mask": [lane.mask for lane in lanes],
            "logprobs": None,
            "episode_return": [lane.total for lane in lanes],
        }

    def _generate(self, model: Any, rows: list[list[int]]) -> list[list[int]]:
        longest, pad = max(map(len, rows)), self.tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        with torch.no_grad():
            out = model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=self.length,
                min_new_tokens=self.length, do_sample=True, temperature=1.0,
                top_k=0, top_p=1.0, eos_token_id=[self.stop, self.tokenizer.eos_token_id], pad_token_id=pad,
            )[:, longest:].tolist()  # fmt: skip
        return [cut(row, {self.stop, self.tokenizer.eos_token_id}) for row in out]


class Lane:
    """An episode that is played as one growing sequence."""

    def __init__(self, play: GrowingEpisodes, seed: int, member: int) -> None:
        self.play, self.env = play, SCENARIOS[SCENARIO].make()
        observation, info = self.env.reset(seed=seed * 1000 + member, options={"layout_seed": seed})
        request = TurnRequest(
            observation, instructions=self.env.unwrapped.instructions, legal_actions=info["legal_actions"]
        )
        self.prompt = play.tokenizer(as_text(play.prompt_map(request)))["input_ids"]
        self.ids: list[int] = []
        self.mask: list[int] = []
        self.total, self.done = 0.0, False

    def step(self, response: list[int]) -> None:
        self.ids += response
        self.mask += [1] * len(response)
        text = self.play.tokenizer.decode(response)
        observation, reward, terminated, truncated, _ = self.env.step(text)
        self.total += float(reward)
        self.done = terminated or truncated
        if not self.done:
            more = self.play.tokenizer(f"\n\n{observation}\n\n", add_special_tokens=False)["input_ids"]
            self.ids += more
            self.mask += [0] * len(more)


def cut(row: list[int], ends: set[int]) -> list[int]:
    """Return the tokens up to the first end token, which is included."""
    for place, token in enumerate(row):
        if token in ends:
            return row[: place + 1]
    return row


def trl_trainer(model: Any, tokenizer: Any, iterations: int, prompts: list[str], **options: Any) -> Any:
    """TRL's trainer with every option that costs time switched off; ``seconds`` gets the time of each step."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            self.started = time.process_time()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            seconds.append(time.process_time() - self.started)

    seconds: list[float] = []
    batch, length = options.pop("batch"), options.pop("length", MAX_TOKENS * 32)
    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=batch, num_generations=GROUP_SIZE, use_cpu=True,
        max_steps=iterations + 1, max_completion_length=length, temperature=1.0, beta=0.0, bf16=False,
        learning_rate=1e-6, report_to="none", save_strategy="no", logging_steps=10**6, disable_tqdm=True,
        gradient_checkpointing=False, shuffle_dataset=False,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model,
        args=settings,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        callbacks=[Clock()],
        **options,
    )
    trainer.seconds = seconds
    return trainer


def trl_episodes(model: Any, tokenizer: Any, iterations: int, length: int) -> dict[str, float]:
    """TRL playing the same game through ``rollout_func``."""
    play = GrowingEpisodes(tokenizer, length)

    def reward(completions: Any, episode_return: list[float], **kwargs: Any) -> list[float]:
        return episode_return

    prompts = [str(seed) for seed in range(GROUPS * (iterations + 1))]
    trainer = trl_trainer(
        model, tokenizer, iterations, prompts, batch=GROUPS * GROUP_SIZE, reward_funcs=reward, rollout_func=play
    )
    trainer.train()
    runs = len(trainer.seconds)
    return {
        "seconds": float(np.mean(trainer.seconds[1:])),
        "rollout_seconds": play.seconds / runs,
        "response_tokens": play.generated / runs,
        "steps": play.steps / runs,
        "episodes": float(GROUPS * GROUP_SIZE),
    }


def trl_single_steps(model: Any, tokenizer: Any, iterations: int, steps: int) -> dict[str, float]:
    """TRL on single-step samples: prompts of real positions, its own generation, no game."""
    env = SCENARIOS[SCENARIO].make()
    groups, prompts = max(1, steps // GROUP_SIZE), []
    for seed in range(groups * (iterations + 1)):
        observation, info = env.reset(seed=seed)
        request = TurnRequest(observation, instructions=env.unwrapped.instructions, legal_actions=info["legal_actions"])
        prompts.append(as_text(PromptMap("think")(request)))
    lengths: list[int] = []

    def reward(completions: list[str], completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
        lengths.extend(map(len, completion_ids))
        return [float("right" in text) for text in completions]

    model.generation_config.eos_token_id = [tokenizer.convert_tokens_to_ids("</action>"), tokenizer.eos_token_id]
    trainer = trl_trainer(
        model, tokenizer, iterations, prompts, batch=groups * GROUP_SIZE, length=MAX_TOKENS, reward_funcs=reward
    )
    trainer.generation_config.eos_token_id = model.generation_config.eos_token_id
    trainer.train()
    runs = len(trainer.seconds)
    return {
        "seconds": float(np.mean(trainer.seconds[1:])),
        "response_tokens": sum(lengths) / runs,
        "steps": float(groups * GROUP_SIZE),
        "episodes": float("nan"),
    }


def iteration_table(folder: str | None, iterations: int) -> None:
    """Print the comparison; both trainers get a fresh copy of the same weights."""
    import copy
    import warnings

    warnings.simplefilter("ignore")
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    model, tokenizer = tiny_model(folder)
    print(f"\nIteration: {parameters(model):,} parameters, {GROUPS} groups of {GROUP_SIZE} episodes of {SCENARIO}")
    a = ours(copy.deepcopy(model), tokenizer, iterations)
    b = trl_episodes(copy.deepcopy(model), tokenizer, iterations, round(a["response_tokens"] / a["steps"]))
    c = trl_single_steps(copy.deepcopy(model), tokenizer, iterations, round(a["steps"]))
    print(f"{'':34}{'s/iteration':>12}{'rollout s':>11}{'steps':>8}{'tokens':>9}{'tokens/s':>10}", end="")
    print(f"{'ratio':>8}{'per token':>11}")
    for name, figures in (("textbench", a), ("TRL rollout_func, whole episodes", b), ("TRL, single-step samples", c)):
        speed = figures["response_tokens"] / figures["seconds"]
        print(
            f"{name:34}{figures['seconds']:12.2f}{figures.get('rollout_seconds', float('nan')):11.2f}"
            f"{figures['steps']:8.0f}{figures['response_tokens']:9.0f}{speed:10.0f}"
            f"{figures['seconds'] / a['seconds']:8.2f}{a['response_tokens'] / a['seconds'] / speed:11.2f}"
        )
    print(
        f"textbench's update: {a['update_seconds']:.2f} s; the trees compute {a['update_tokens_computed']:.0f} tokens "
        f"for rows of {a['update_tokens']:.0f}"
    )


# ---------------------------------------------------------------- memory


def make_learner(model: Any, config: MSGRPOConfig) -> Learner:
    """Return a learner without a game around it."""
    scorer = TokenScorer(model, temperature=1.0, chunk=config.logprob_chunk_tokens, autocast=None)
    packing = choose_ways(scorer, config.packing)
    processes = Processes()
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


# ---------------------------------------------------------------- rate


def matmul_rate(rows: int, inner: int, columns: int) -> float:
    """GFLOP/s of (rows, inner) @ (inner, columns), float32, best of five."""
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(20):
            a @ b
        best = min(best, (time.process_time() - started) / 20)
    return 2 * rows * inner * columns / best / 1e9


def rate_table(folder: str | None) -> None:
    """Print the update's and the sampler's rate beside that of plain products of their shapes."""
    from agents.models import TransformersModel

    model, tokenizer = tiny_model(folder)
    shape = model.config
    hidden, inter, vocabulary = shape.hidden_size, shape.intermediate_size, shape.vocab_size
    body = parameters(model) - model.get_input_embeddings().weight.numel()
    learner = make_learner(model, MSGRPOConfig(minibatches=1))
    rows = random_rows(4096, vocabulary)
    learner.update(rows, np.random.default_rng(0), 1e-9)
    started = time.process_time()
    stats = learner.update(rows, np.random.default_rng(0), 1e-9)
    seconds = time.process_time() - started
    length = 63
    attention = 12 * shape.num_hidden_layers * hidden * length / 2 * stats.computed_tokens
    flops = 6 * body * stats.computed_tokens + attention + 8 * vocabulary * hidden * stats.sums["tokens"]
    peak = matmul_rate(4096, hidden, inter)
    print(f"\nRate: {torch.get_num_threads()} threads, {parameters(model):,} parameters")
    print(f"  products of the update's shape (4096 x {hidden} x {inter}): {peak:8.1f} GFLOP/s")
    print(f"  update of {stats.computed_tokens} tokens in {seconds:.2f} s:   {flops / seconds / 1e9:8.1f} GFLOP/s,"
          f" {flops / seconds / 1e9 / peak:.0%}")  # fmt: skip
    sampler = TransformersModel(model, tokenizer)
    prompts = [row.prompt for row in rows]
    for batch in (8, 64, 128):
        started = time.process_time()
        out = sampler.generate_ids(
            prompts[:batch], Decoding(1.25, max_tokens=32, stop=("\x00",)), [(i,) for i in range(batch)]
        )
        seconds = time.process_time() - started
        made = sum(len(row.ids) for row in out)
        done = 2 * (body + vocabulary * hidden) * made + 2 * body * 32 * batch
        limit = matmul_rate(batch, hidden, inter)
        rate = done / seconds / 1e9
        print(
            f"  sampling, batch {batch:4}: {made / seconds:8.0f} tokens/s, {rate:6.1f} GFLOP/s; plain products "
            f"({batch} x {hidden} x {inter}) {limit:6.1f} GFLOP/s, {rate / limit:.0%}"
        )


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("iteration", "memory", "rate"))
    parser.add_argument(
        "--model", metavar="DIR", help="a tiny model's folder (by default one is made), smollm2 or gguf:PATH"
    )
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default=product_dtype(MSGRPOConfig()),
        help="products of a pretrained model (what is fast here)",
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.model == "smollm2" or (options.model or "").startswith("gguf:"):
        import pretrained  # beside this file

        pretrained.tables(options.model, options.threads, options.dtype)
        return
    if options.only in (None, "iteration"):
        iteration_table(options.model, options.iterations)
    if options.only in (None, "memory"):
        memory_table()
    if options.only in (None, "rate"):
        rate_table(options.model)


if __name__ == "__main__":
    main()
