"""Memory and time of a training recipe, from its model's shape: the figures in the comments of configs/*.toml.

    python research/perf/recipe_cost.py configs/qwen2.5-3b-frozen-lake.toml --chip h100

The formulas are below, one function each; every number is bytes or seconds. They need the model's configuration, which
is written here for the models of the recipes (public figures of their config.json), so nothing is downloaded.
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.learner import longest_tree
from textgames import SCENARIOS


@dataclass(frozen=True)
class Shape:
    """What of a model's config.json costs something."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool = True

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def body(self) -> int:
        """How many weights the layers have."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        biases = self.head_dim * (self.heads + 2 * self.kv_heads) + 2 * self.hidden
        return self.layers * (attention + 3 * self.hidden * self.intermediate + biases)

    @property
    def embedding(self) -> int:
        """Weights of the embedding, and of the head if it isn't the same."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def linear_widths(self) -> int:
        """Sum of inputs and outputs of a layer's linear maps: what a LoRA of rank 1 costs per layer."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return 2 * (self.hidden + q) + 2 * (self.hidden + kv) + 3 * (self.hidden + self.intermediate)


SHAPES = {
    "Qwen/Qwen2.5-3B-Instruct": Shape(36, 2048, 11008, 16, 2, 151_936),
    "Qwen/Qwen2.5-0.5B-Instruct": Shape(24, 896, 4864, 14, 2, 151_936),
}

CHIPS = {
    # name: (bfloat16 matrix products, FLOP/s; memory, bytes/s; memory that programs get, bytes), vendors' figures
    "h100": (989e12, 3.35e12, 79 * 2**30),
    "a100": (312e12, 2.0e12, 79 * 2**30),
    "rtx4090": (165e12, 1.0e12, 23.5 * 2**30),
}
UPDATE_SHARE = 0.35
"""Share of the chip's products that an update of this kind is assumed to reach."""
DECODING_SHARE = 0.6
"""Share of the chip's memory rate that decoding is assumed to reach if memory is the limit."""
LAUNCH_SECONDS = 0.7e-3
"""Assumed time to launch one decoder layer's kernels from Python, which is the limit for models of this size."""

BYTES = {"float32": 4, "bfloat16": 2}
ON_A_GPU = "bfloat16"  # what dtype = "auto" takes there


@dataclass(frozen=True)
class Load:
    """Tokens of one iteration, for episodes of full length and responses of a given mean length."""

    episodes: int
    drawn: int
    steps: int
    prompt: int
    response: float

    @property
    def trained(self) -> float:
        """Tokens of the update, without sharing prefixes."""
        return self.drawn * self.steps * (self.prompt + self.response)


def trainable(shape: Shape, config: MSGRPOConfig) -> int:
    """Weights that get a gradient."""
    if config.lora_rank:
        return shape.layers * shape.linear_widths * config.lora_rank
    return shape.body + shape.embedding


def weight_memory(shape: Shape, config: MSGRPOConfig) -> dict[str, float]:
    """Weights, gradients and AdamW's two moments; a copy in dtype where sampling needs another type."""
    size, n = BYTES[config.param_dtype], shape.body + shape.embedding
    trained = trainable(shape, config) * (4 if config.lora_rank else size)  # peft keeps adapters in float32
    memory = {"weights": float(n * size), "gradients": float(trained), "AdamW": 2.0 * trained}
    if config.dtype != config.param_dtype:
        if config.engine == "live":
            memory["copy for sampling"] = n * BYTES[config.dtype]
        memory["autocast's casts"] = n * BYTES[config.dtype]
    if config.kl_coefficient and not config.lora_rank:
        memory["reference"] = n * size
    return memory


def activation_memory(shape: Shape, config: MSGRPOConfig) -> dict[str, float]:
    """Return what one micro-batch takes.

    With gradient checkpointing: the input of every layer, in the type of the weights, and one layer's insides (about 8
    hidden and 4 intermediate widths). Without: those insides for every layer. Two float32 matrices of
    logprob_chunk_tokens x vocabulary and the product that they come from. A dense mask of the trees if that is asked
    for: FlexAttention, which a GPU takes otherwise, has none.
    """
    tokens, size = config.micro_batch_tokens, BYTES[config.dtype]
    inside = tokens * (8 * shape.hidden + 4 * shape.intermediate) * size
    kept = tokens * shape.hidden * BYTES[config.param_dtype] * shape.layers + inside
    tree = longest_tree(config, shape.hidden)
    dense = config.packing == "tree" and config.attention in ("sdpa", "eager")
    return {
        "activations": float(kept if config.gradient_checkpointing else inside * shape.layers),
        "tree mask": float(tokens * tree * (1 + size)) if dense else 0.0,
        "logit chunks": float(config.logprob_chunk_tokens * shape.vocabulary * (2 * 4 + size)),
    }


def cache_memory(shape: Shape, config: MSGRPOConfig, load: Load) -> float:
    """Return keys and values of all rows in flight while sampling."""
    rows = config.rollout_batch or load.episodes
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * BYTES[config.dtype]
    return float(rows * (load.prompt + config.max_response_tokens) * per_token)


def vllm_memory(config: MSGRPOConfig, card: float) -> float:
    """Return what vLLM in the learner's process keeps of a card's bytes, at all times; its own default is 0.9."""
    own = config.engine == "vllm" and not config.engine_urls
    return card * config.engine_options.get("llm", {}).get("gpu_memory_utilization", 0.9) if own else 0.0


def peaks(shape: Shape, config: MSGRPOConfig, load: Load, card: float = 0.0) -> dict[str, float]:
    """Return the most bytes of a card that a rollout and an update take.

    While it is sampled there are no gradients and no casts, but keys, values and a token's logits of all rows.
    """
    fixed, vllm = weight_memory(shape, config), vllm_memory(config, card)
    kept = sum(size for name, size in fixed.items() if name not in ("gradients", "autocast's casts"))
    logits = (config.rollout_batch or load.episodes) * shape.vocabulary * 4 * 4
    sampling = 0.0 if config.engine == "vllm" else cache_memory(shape, config, load) + logits
    update = sum(fixed.values()) + sum(activation_memory(shape, config).values())
    return {"rollout": kept + sampling + vllm, "update": update + vllm}


def host_memory(shape: Shape, config: MSGRPOConfig) -> float:
    """Return the bytes of the computer's memory that the copy before each update holds: as a checkpoint."""
    return 3 * weight_memory(shape, config)["gradients"] if config.rollback else 0.0


def checkpoint_disk(shape: Shape, config: MSGRPOConfig) -> float:
    """Return a checkpoint's bytes: what is trained, and AdamW's two moments."""
    return 3 * weight_memory(shape, config)["gradients"]


def iteration_seconds(shape: Shape, config: MSGRPOConfig, load: Load, chip: str) -> tuple[float, float]:
    """Rollout and update.

    Decoding reads all weights, and launches every layer, once per token position, which the rows in flight share:
    steps * longest response * max(bytes / memory rate, layers * launch time). The update computes 6 FLOP per weight
    and token (8 with checkpointing), plus one pass of 2 for old log-probabilities when there is more than one step.
    """
    flops, bandwidth, _ = CHIPS[chip]
    positions = load.steps * config.max_response_tokens
    reading = (shape.body + shape.embedding) * BYTES[config.dtype] / (bandwidth * DECODING_SHARE)
    rollout = positions * max(reading, shape.layers * LAUNCH_SECONDS)
    per_token = (8 if config.gradient_checkpointing else 6) * config.update_passes
    per_token += 0 if config.strictly_on_policy else 2
    update = load.trained * per_token * (shape.body + shape.embedding) / (flops * UPDATE_SHARE)
    return rollout, update


def figures(path: str | Path, chip: str = "h100", prompt: int = 600, response: int = 150) -> list[str]:
    """Return the lines that a recipe's comment has; prompts and responses are as long on average, in tokens."""
    config = MSGRPOConfig.from_toml(path)
    config = replace(config, dtype=ON_A_GPU) if config.dtype == "auto" else config
    if config.model not in SHAPES:
        raise ConfigError(f"no shape is known for model = {config.model!r}; known: {', '.join(SHAPES)}")
    shape, card = SHAPES[config.model], CHIPS[chip][2]
    horizon = config.max_steps or SCENARIOS[config.scenarios[0]].horizon
    load = Load(config.episodes, config.draws, horizon, prompt, response)
    parts = {**weight_memory(shape, config), **activation_memory(shape, config)}
    parts["key-value cache (sampling)"] = 0.0 if config.engine == "vllm" else cache_memory(shape, config, load)
    parts["vLLM"] = vllm_memory(config, card)
    most, disk = peaks(shape, config, load, card), checkpoint_disk(shape, config)
    parts |= {f"peak of the {name}": size for name, size in most.items()}
    # kept ones, the best one, and the one that is being written
    parts |= {
        "host memory: rollback": host_memory(shape, config),
        "disk: a checkpoint": disk,
        "disk, at most": disk * (config.keep_checkpoints + 2),
    }
    lines = [
        f"{config.model}: {(shape.body + shape.embedding) / 1e9:.2f}e9 weights, {trainable(shape, config):,} trained"
    ]
    lines += [f"  {name:28}{size / 2**30:8.2f} GiB" for name, size in parts.items() if size]
    if max(most.values()) > card:
        lines.append(f"  more than the {card / 2**30:.1f} GiB of {chip}")
    rollout, step = iteration_seconds(shape, config, load, chip)
    lines.append(
        f"  {chip}: rollout {rollout:.0f} s, update {step:.0f} s per iteration; {config.iterations} iterations "
        f"{(rollout + step) * config.iterations / 3600:.1f} h, evaluations not counted"
    )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a file of configs/")
    parser.add_argument("--chip", choices=CHIPS, default="h100")
    parser.add_argument("--prompt-tokens", type=int, default=600, help="mean prompt")
    parser.add_argument("--response-tokens", type=int, default=150, help="mean response")
    options = parser.parse_args()
    print("\n".join(figures(options.config, options.chip, options.prompt_tokens, options.response_tokens)))


if __name__ == "__main__":
    main()
