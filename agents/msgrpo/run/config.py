"""Every setting of a training run, documented field by field, in one frozen dataclass that loads from TOML.

The defaults are those that the paper's first author published for Qwen2.5-3B-Instruct (arXiv 2508.10839). A file may
group its keys in ``[section]`` tables, as :meth:`MSGRPOConfig.to_toml` does, or hold them flat.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from agents.msgrpo.run.options import ConfigError, accepted, checked, option, parse_value, toml_value
from textgames.names import nearest_or_all


@dataclass(frozen=True, slots=True, kw_only=True)
class MSGRPOConfig:
    """The settings of one run; immutable, checked when made.

    Raises:
        ConfigError: a value of the wrong type or outside what its field accepts, or values that contradict each other.
    """

    # ---------------------------------------------------------------- model
    model: str = option(
        "",
        "model",
        "Path or Hugging Face name of the model; for the command line, where no model object is passed.",
    )
    tokenizer: str = option("", "model", "Path or name of the tokenizer; empty: the model's own.")
    dtype: str = option(
        "float32",
        "model",
        "Type of the matrix products, of sampling and of activations (autocast).",
        choices=("float32", "bfloat16"),
    )
    param_dtype: str = option(
        "float32",
        "model",
        "Type that weights and optimiser state are kept in. At a learning rate of 1e-6 most updates round to "
        "nothing in bfloat16: it halves the memory and costs accuracy.",
        choices=("float32", "bfloat16"),
    )
    attention: str = option(
        "sdpa",
        "model",
        "Attention implementation of transformers. Prefix trees need sdpa or eager.",
        choices=("sdpa", "eager", "flash_attention_2"),
    )
    gradient_checkpointing: bool = option(
        False,
        "model",
        "Recompute activations in the backward pass: less memory, about a third more time.",
    )
    lora_rank: int = option(
        0,
        "model",
        "Rank of the LoRA adapter; 0 trains all weights. With LoRA the reference model is the adapter switched off.",
        low=0,
    )
    lora_alpha: int = option(
        32,
        "model",
        "LoRA scale: the adapter's output is multiplied by lora_alpha / lora_rank.",
        low=1,
    )
    lora_targets: tuple[str, ...] = option(
        ("all-linear",),
        "model",
        "Names of the modules that get an adapter, or all-linear.",
    )
    device: str = option("auto", "model", "Torch device: cpu, cuda, cuda:1, or auto.")

    # ---------------------------------------------------------------- rollout
    scenarios: tuple[str, ...] = option(
        (),
        "rollout",
        "Scenario names or environment ids to train on; groups are dealt to them in turn. Empty: the one "
        "given to the trainer.",
    )
    groups: int = option(
        2,
        "rollout",
        "Groups per iteration. The episodes of a group start from the same initial state.",
        low=1,
    )
    group_size: int = option(16, "rollout", "Episodes in a group.", low=2)
    horizon: int = option(0, "rollout", "Most steps of a training episode; 0: the scenario's own.", low=0)
    temperature: float = option(
        1.25,
        "rollout",
        "Sampling temperature in training. The learner's log-probabilities apply it as well; there is no "
        "top-k or top-p.",
        above=0,
    )
    response_mode: str = option(
        "think",
        "rollout",
        "What the prompt asks for: reasoning, plan and action, or the action alone.",
        choices=("think", "direct"),
    )
    prompt_file: str = option(
        "", "rollout", "TOML file with the prompts' wording (PromptMap.from_file); empty: the built-in wording."
    )
    max_prompt_tokens: int = option(1500, "rollout", "Longest prompt. A longer one is an error, never cut.", low=1)
    max_response_tokens: int = option(
        256,
        "rollout",
        "Longest response. One that is cut off here is trained on like any other, and the rate is logged.",
        low=1,
    )
    format_penalty: float = option(
        1.0,
        "rollout",
        "Subtracted from the reward of a step whose response is invalid.",
        low=0,
    )
    invalid_action: str = option(
        "default",
        "rollout",
        "What an invalid response makes the environment do.",
        choices=("default", "random", "noop", "terminate"),
    )
    rollout_batch: int = option(
        0,
        "rollout",
        "Episodes in flight at once, refilled as episodes end; 0: all of an iteration.",
        low=0,
    )

    # ---------------------------------------------------------------- advantages
    discount: float = option(
        1.0,
        "advantages",
        "Discount per step in an episode's return; 1: the plain sum, as in the paper.",
        above=0,
        high=1,
    )
    advantage_baseline: str = option(
        "mean",
        "advantages",
        "Subtracted from a return: its group's mean, the mean of the group's other episodes, or nothing.",
        choices=("mean", "leave_one_out", "none"),
    )
    advantage_scale: str = option(
        "group_std",
        "advantages",
        "Divides the difference: the sample standard deviation of the group, that of the whole batch of "
        "differences, or 1.",
        choices=("group_std", "batch_std", "none"),
    )
    advantage_eps: float = option(1e-6, "advantages", "Added to the standard deviation.", above=0)

    # ---------------------------------------------------------------- sampling
    episode_sampling: str = option(
        "aaw",
        "sampling",
        "How episodes are drawn for the update: |A|-weighted without replacement, with replacement, with "
        "replacement and sign(A) * mean|A| in place of A (unbiased), uniformly without replacement, or not at"
        " all.",
        choices=("aaw", "aaw_replacement", "unbiased", "uniform", "off"),
    )
    episodes_drawn: int = option(
        0,
        "sampling",
        "M, the episodes that are drawn per iteration; 0: half of groups * group_size. Fewer are drawn "
        "without replacement where fewer have an advantage.",
        low=0,
    )

    # ---------------------------------------------------------------- loss
    loss_normalizer: str = option(
        "token",
        "loss",
        "Z, which divides the summed loss: the response tokens, the steps or the episodes of the optimiser "
        "step's batch.",
        choices=("token", "step", "episode"),
    )
    clip_low: float = option(0.2, "loss", "The ratio is clipped below at 1 - clip_low.", low=0, high=1)
    clip_high: float = option(0.2, "loss", "The ratio is clipped above at 1 + clip_high.", low=0)
    kl_coefficient: float = option(
        0.0,
        "loss",
        "beta of the KL term towards the reference model, the model as it was at the start; 0: no reference "
        "model is kept.",
        low=0,
    )
    kl_estimator: str = option(
        "k3",
        "loss",
        "Per-token estimate of KL(policy || reference): r - 1 - log r (k3) or (log r)^2 / 2 (k2, whose "
        "gradient is the exact one on policy), r = p_ref / p.",
        choices=("k2", "k3"),
    )
    entropy_coefficient: float = option(
        0.001,
        "loss",
        "c_H of the entropy bonus, on the exact entropy of every response token's distribution.",
    )
    old_logprobs: str = option(
        "auto",
        "loss",
        "Where pi_old comes from: the sampler (sampling), a pass of the learner before the update "
        "(recompute), or the sampler exactly when the update is one full-batch step by the model that sampled"
        " (auto).",
        choices=("auto", "sampling", "recompute"),
    )

    # ---------------------------------------------------------------- update
    iterations: int = option(600, "update", "Iterations of the run.", low=1)
    update_passes: int = option(1, "update", "Times that an iteration's drawn episodes are gone through.", low=1)
    minibatches: int = option(
        2,
        "update",
        "Optimiser steps per pass. The steps of all drawn episodes are shuffled over them.",
        low=1,
    )
    learning_rate: float = option(1e-6, "update", "Peak learning rate of AdamW.", above=0)
    schedule: str = option(
        "constant",
        "update",
        "Learning rate after the warm-up: constant, or linear / cosine to zero at the last iteration.",
        choices=("constant", "linear", "cosine"),
    )
    warmup: int = option(0, "update", "Iterations over which the learning rate rises linearly from zero.", low=0)
    weight_decay: float = option(0.01, "update", "Decoupled weight decay, on matrices only.", low=0)
    adam_beta1: float = option(0.9, "update", "AdamW's decay of the first moment.", low=0, high=0.9999)
    adam_beta2: float = option(0.999, "update", "AdamW's decay of the second moment.", low=0, high=0.99999)
    adam_eps: float = option(1e-8, "update", "AdamW's epsilon.", above=0)
    max_grad_norm: float = option(1.0, "update", "Gradients are scaled down to this norm; 0: never.", low=0)
    abort_grad_norm: float = option(
        1e4,
        "update",
        "A gradient norm above this stops the run, as a NaN does; 0: never.",
        low=0,
    )
    packing: str = option(
        "tree",
        "update",
        "Shape of a micro-batch: token trees in which equal prefixes are computed once, or length-sorted "
        "padded rows. Trees fall back to rows for a model that they don't fit, with a note.",
        choices=("tree", "rows"),
    )
    micro_batch_tokens: int = option(
        8192,
        "update",
        "Tokens of one forward and backward pass, padding included; bounds the memory and does not change the"
        " gradient.",
        low=1,
    )
    tree_tokens: int = option(
        0,
        "update",
        "Longest token tree; longer steps get a tree of their own. Attention within a tree is quadratic, so small "
        "models want small trees. 0: four times the model's width, between 256 and 4096.",
        low=0,
    )
    logprob_chunk_tokens: int = option(
        1024,
        "update",
        "Rows of the tokens x vocabulary matrix that exist at once.",
        low=1,
    )

    # ---------------------------------------------------------------- evaluation
    eval_every: int = option(
        50,
        "evaluation",
        "Iterations between evaluations, which also take place before the first and after the last; 0: none.",
        low=0,
    )
    eval_scenarios: tuple[str, ...] = option((), "evaluation", "Scenarios to evaluate on; empty: those trained on.")
    eval_episodes: int = option(
        50,
        "evaluation",
        "Episodes per evaluation scenario: episode k has seed first_seed + k.",
        low=1,
    )
    eval_temperature: float = option(0.5, "evaluation", "Sampling temperature in evaluation; 0: greedy.", low=0)

    # ---------------------------------------------------------------- run
    seed: int = option(
        0,
        "run",
        "Seed of the run: episodes, draws and shuffles follow from it and the iteration's number.",
        low=0,
    )
    out: str = option("", "run", "Folder of checkpoints, metrics and samples; empty: nothing is written.")
    checkpoint_every: int = option(
        50,
        "run",
        "Iterations between checkpoints; the last one is always saved. 0: only that one.",
        low=0,
    )
    keep_checkpoints: int = option(1, "run", "Checkpoints kept besides the best one.", low=1)
    samples_every: int = option(
        10,
        "run",
        "Iterations between sample episodes written to samples.txt; 0: none.",
        low=0,
    )
    samples_shown: int = option(2, "run", "Episodes written each time.", low=1)
    tensorboard: bool = option(False, "run", "Also write TensorBoard event files.")
    threads: int = option(0, "run", "Torch's CPU threads; 0: as they are.", low=0)

    def __post_init__(self) -> None:
        for about in fields(self):
            object.__setattr__(self, about.name, checked(about.name, getattr(self, about.name), about))
        self._check_together()

    def _check_together(self) -> None:
        if self.episodes_drawn > self.episodes:
            raise ConfigError(
                f"episodes_drawn = {self.episodes_drawn}: an iteration has groups * group_size = {self.episodes} "
                f"episodes; accepted: 0 (half of them) to {self.episodes}"
            )
        if self.old_logprobs == "sampling" and not self.strictly_on_policy:
            raise ConfigError(
                f"old_logprobs = 'sampling' with update_passes = {self.update_passes} and minibatches = "
                f"{self.minibatches}: accepted only with one full-batch step (both 1); otherwise 'auto' or 'recompute'"
            )
        if self.packing == "tree" and self.attention == "flash_attention_2":
            raise ConfigError("packing = 'tree' needs attention = 'sdpa' or 'eager', got 'flash_attention_2'")

    # ---------------------------------------------------------------- derived

    @property
    def episodes(self) -> int:
        """N, the episodes of one iteration."""
        return self.groups * self.group_size

    @property
    def draws(self) -> int:
        """M, the episodes drawn for the update."""
        return self.episodes_drawn or max(1, self.episodes // 2)

    @property
    def strictly_on_policy(self) -> bool:
        """Whether the model that is updated is always exactly the one that sampled."""
        return self.update_passes == 1 and self.minibatches == 1

    # ---------------------------------------------------------------- files and the command line

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> "MSGRPOConfig":
        """Make a config from ``{key: value}``, where a value may be a ``{key: value}`` section of the same keys."""
        flat: dict[str, Any] = {}
        for key, value in settings.items():
            section = value if isinstance(value, Mapping) else {key: value}
            if isinstance(value, Mapping) and key not in SECTIONS:
                raise ConfigError(f"[{key}] is not a section; {nearest_or_all(key, SECTIONS)}")
            for name, setting in section.items():
                if name not in _FIELDS:
                    raise ConfigError(f"{name} is not a setting; {nearest_or_all(name, _FIELDS)}")
                if name in flat:
                    raise ConfigError(f"{name} is set twice: {flat[name]!r} and {setting!r}")
                flat[name] = setting
        return cls(**flat)

    @classmethod
    def from_toml(cls, path: str | Path, overrides: Iterable[str] = ()) -> "MSGRPOConfig":
        """Read a file, then apply ``key=value`` overrides.

        Raises:
            ConfigError: a file that can't be read or isn't TOML, and everything that the constructor refuses.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
            settings = tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"can't read the config {str(path)!r}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not a TOML file: {error}") from None
        return cls.from_mapping(settings).with_overrides(overrides)

    def with_overrides(self, overrides: Iterable[str]) -> "MSGRPOConfig":
        """The same settings with ``key=value`` strings applied; values are TOML, quotes around strings optional."""
        changes: dict[str, Any] = {}
        for override in overrides:
            key, equals, text = override.partition("=")
            key = key.strip()
            if not equals:
                raise ConfigError(f"--set {override}: expected key=value, for example --set learning_rate=1e-5")
            if key not in _FIELDS:
                raise ConfigError(f"--set {override}: {key} is not a setting; {nearest_or_all(key, _FIELDS)}")
            changes[key] = parse_value(text.strip())
        return replace(self, **changes) if changes else self

    def to_toml(self, *, documented: bool = False) -> str:
        """The settings as TOML in sections; ``documented`` puts each field's description above it."""
        lines: list[str] = []
        for section in SECTIONS:
            lines += ["", f"[{section}]"]
            for about in fields(self):
                if about.metadata["section"] == section:
                    lines += [f"# {describe(about.name)}"] if documented else []
                    lines.append(f"{about.name} = {toml_value(getattr(self, about.name))}")
        return "\n".join(lines[1:]) + "\n"

    def differences(self, other: "MSGRPOConfig") -> dict[str, tuple[Any, Any]]:
        """``{name: (own value, other's value)}`` of the settings in which two configs differ."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in _FIELDS}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


_FIELDS = {about.name: about for about in fields(MSGRPOConfig)}
SECTIONS = tuple(dict.fromkeys(about.metadata["section"] for about in _FIELDS.values()))


def describe(name: str) -> str:
    """A field's documentation and what it accepts, in one line."""
    about = _FIELDS[name]
    return f"{about.metadata['doc']} Accepted: {accepted(about)}."
