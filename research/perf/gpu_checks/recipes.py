"""One iteration of a recipe of configs/, with random weights of its model's shape: memory, speed, mismatch."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from recipe_cost import Load, Shape, peaks, trainable

from agents import EpisodeTask
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, TokenRow, prompts_of, prompts_of_random_play
from agents.msgrpo.learner import product_dtype
from gpu_checks.machine import Memory, clock
from gpu_checks.models import random_model, shape_of, word_tokenizer
from textgames import SCENARIOS

_PROMPTS = 48  # that the tokenizer is made from, of every scenario
MISMATCH = ("mismatch_mean", "mismatch_max", "mismatch_kl")


def settings_of(path: Path, device: torch.device, *, small: bool) -> MSGRPOConfig:
    """Return the recipe, of which one iteration is played by the live model and nothing is written or evaluated.

    Nothing is compiled: FlexAttention, which is, has a part of its own. Random weights name no action, and without
    differences in return nothing would be learnt: invalid responses make random moves here, each episode's own.
    ``small`` also has few and short responses.
    """
    config = replace(
        MSGRPOConfig.from_toml(path), out="", eval_every=0, samples_every=0, threads=0, device=str(device),
        invalid_action="random", shared_chance=False, engine="live", engine_urls=(), engine_options={}, staleness=0,
        attention="sdpa", eval_opponent="", eval_protocol="random", eval_regret_episodes=0, eval_exploitability=False,
    )  # fmt: skip
    config = replace(config, dtype=product_dtype(config))
    if not small:
        return config
    return replace(
        config, groups=2, group_size=6, episodes_drawn=0, max_response_tokens=min(12, config.max_response_tokens),
        micro_batch_tokens=2048, logprob_chunk_tokens=256, tree_tokens=1024,
    )  # fmt: skip


def run(path: Path, device: torch.device, rates: dict[str, float], *, small: bool, iterations: int) -> dict[str, Any]:
    """Figures of the last of some iterations; the others warm up."""
    config = settings_of(path, device, small=small)
    shape = shape_of(config, small=small)
    wording = prompts_of(config)
    tasks = [EpisodeTask.of(scenario, seed) for scenario in config.scenarios for seed in range(_PROMPTS)]
    tokenizer = word_tokenizer([next(prompts_of_random_play(task, wording))[1] for task in tasks])
    memory = Memory(device)
    memory.reset()
    model = random_model(shape, getattr(torch, config.param_dtype), device)
    trainer = MSGRPOTrainer(model, tokenizer, config=config, quiet=True)
    watched = Watched(trainer, memory, device)
    for _ in range(iterations):
        metrics = watched.iterate()
    result = {
        "model": config.model,
        "weights": shape.body + shape.embedding,
        "trained": trainable(shape, config),
        "attention": trainer.learner.scorer.causal_lm.config._attn_implementation,
        "packing": trainer.learner.work.packing,
        "episodes": metrics["episodes"],
        "steps": metrics["steps"],
        "skipped": metrics["skipped"],
        "prompt_tokens": watched.mean_prompt,
        "response_tokens": metrics["response_tokens"],
        "rollout_seconds": watched.rollout_seconds,
        "rollout_tokens_per_second": metrics["response_tokens"] / max(watched.rollout_seconds, 1e-9),
        "update_seconds": watched.update_seconds,
        "update_tokens": metrics["update_tokens"],
        "update_tokens_computed": metrics["update_tokens_computed"],
        "update_tokens_per_second": metrics["update_tokens"] / max(watched.update_seconds, 1e-9),
        "peak_rollout": watched.rollout_peak,
        "peak_update": watched.update_peak,
        **{name: metrics[name] for name in MISMATCH if name in metrics},
    }
    flops = _update_flops(shape, config, metrics, watched.response_tokens)
    result["update_flops_per_second"] = flops / max(watched.update_seconds, 1e-9)
    result["update_share_of_products"] = result["update_flops_per_second"] / rates[f"{config.dtype}_flops"]
    result["predicted"] = peaks(shape, config, load_of(config, watched.mean_prompt))
    del trainer, watched, model
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return result


class Watched:
    """A trainer whose rollout and update are measured one by one."""

    def __init__(self, trainer: MSGRPOTrainer, memory: Memory, device: torch.device) -> None:
        self._trainer, self._memory, self._device = trainer, memory, device
        self._update = trainer.update
        trainer.update = self._measured  # type: ignore[method-assign]
        self.rollout_peak: dict[str, int] = {}
        self.update_peak: dict[str, int] = {}
        self._started = self.rollout_seconds = self.update_seconds = 0.0
        self.response_tokens, self.mean_prompt = 0, 0.0

    def iterate(self) -> dict[str, Any]:
        self._memory.reset()
        self._started = clock(self._device)
        return self._trainer.iterate()

    def _measured(self, rows: Sequence[TokenRow], *others: Any) -> Any:
        self.rollout_peak = self._memory.peak()
        self._memory.reset()
        self.response_tokens = sum(len(row.response) for row in rows)
        self.mean_prompt = sum(len(row.prompt) for row in rows) / len(rows)
        begun = clock(self._device)
        self.rollout_seconds = begun - self._started
        stats = self._update(rows, *others)
        self.update_seconds = clock(self._device) - begun
        self.update_peak = self._memory.peak()
        return stats


def _update_flops(shape: Shape, config: MSGRPOConfig, metrics: dict[str, Any], response_tokens: int) -> float:
    """Products of an update, attention left out: forward, recomputed forward, gradients of inputs and of weights.

    The output head is computed at response tokens alone, and always twice. One pass more where the learner computes
    the old log-probabilities.
    """
    backward = 2 if config.lora_rank else 4
    body = 2 + (2 if config.gradient_checkpointing else 0) + backward
    old = 0 if config.strictly_on_policy else 2 / config.update_passes
    head = (4 + backward + old) * shape.vocabulary * shape.hidden * response_tokens * config.update_passes
    return float((body + old) * shape.body * metrics["update_tokens_computed"] + head)


def load_of(config: MSGRPOConfig, prompt: float) -> Load:
    """Return the tokens of an iteration whose prompts have so many and whose responses are as long as they may be."""
    horizon = config.max_steps or SCENARIOS[config.scenarios[0]].horizon
    return Load(config.episodes, config.draws, horizon, round(prompt), config.max_response_tokens)
