"""Every setting of a training run: its type, its default, what it accepts and what it means.

The defaults are the sizes and rates that the paper's first author published for Qwen2.5-3B-Instruct (arXiv 2508.10839),
with the decisions at the head of :mod:`agents.msgrpo.trainer`; the preset ``paper`` has all of his settings.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from agents.msgrpo.credit import METHODS
from agents.msgrpo.draws import DRAWS
from agents.msgrpo.engines import ENGINES
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.normalizers import NORMALIZERS
from agents.msgrpo.plugins import OWN, Registry
from agents.msgrpo.rewards import REWARDS
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.tasks import SAMPLERS

POINTS: dict[str, Registry[Any]] = {
    registry.point: registry for registry in (METHODS, DRAWS, FILTERS, SURROGATES, NORMALIZERS, SAMPLERS, REWARDS)
}
"""The plug-in points by name; the settings of their methods stand in ``[point.method]``."""


def _as_tuple(value: Any) -> Any:
    """Let one name stand for a list of one, and take a list as TOML has it."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


def _as_mixture(value: Any) -> Any:
    """Let a name, or a list of names, stand for a table of equal weights."""
    names = _as_tuple(value)
    return dict.fromkeys(names, 1.0) if isinstance(names, tuple) else value


Mixture = Annotated[dict[str, Annotated[float, Field(gt=0)]], BeforeValidator(_as_mixture)]

TrackerName = Literal["tensorboard", "wandb", "trackio", "comet_ml", "aim", "mlflow", "clearml", "dvclive", "swanlab"]
"""What accelerate can send metrics to."""

RENAMED = {"horizon": "max_steps"}
"""Names that settings had, and those that they have."""

TrackerNames = Annotated[tuple[TrackerName, ...], BeforeValidator(_as_tuple)]


def setting(section: str, default: Any, *, holds: Literal["", "data", "player"] = "", **limits: Any) -> Any:
    """Declare a field that stands in ``[section]`` of a file; the text below a field is its documentation.

    A text in it may name code to import, which a stranger's folder may not, unless the field ``holds`` data alone
    (files, names on hubs, devices), or a player, in which ``hf:FOLDER`` is a model and not a module of that name.
    """
    return Field(default, json_schema_extra={"section": section, **({"holds": holds} if holds else {})}, **limits)


def method(section: str, default: str, registry: Registry[Any]) -> Any:
    """Declare a field that names a method of a plug-in point; further methods may be registered at any time."""
    return Field(default, json_schema_extra={"section": section, "point": registry.point})


def table(section: str, holds: Literal["", "data", "player"] = "") -> Any:
    """Declare a field that is a table, empty by default; ``holds`` as in :func:`setting`."""
    return Field(default_factory=dict, json_schema_extra={"section": section, **({"holds": holds} if holds else {})})


@dataclass(
    frozen=True,
    kw_only=True,
    config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True),
)
class TrainingSettings:
    """The fields of :class:`agents.msgrpo.configuration.config.MSGRPOConfig`, checked by pydantic when one is made."""

    model: str = setting("model", "", holds="data")
    """Path or Hugging Face name of the model, or one that ``--agent`` takes (``smollm2``, ``gguf:PATH``, ``tiny``); for
    the command line, if no model object is passed."""
    tokenizer: str = setting("model", "", holds="data")
    """Path or name of the tokenizer; empty: the model's own."""
    chat_template_kwargs: dict[str, Any] = table("model")
    """Arguments of the tokenizer's chat template, such as enable_thinking = false; the trained model is saved with
    them."""
    dtype: Literal["float32", "bfloat16", "auto"] = setting("model", "float32")
    """Type of the matrix products, of sampling and of activations (autocast). auto: bfloat16 on a GPU, and on a
    processor that multiplies it by instructions of its own (``textbench doctor`` knows), elsewhere float32."""
    param_dtype: Literal["float32", "bfloat16"] = setting("model", "float32")
    """Type that weights and optimiser state are kept in. At a learning rate of 1e-6 most updates round to nothing
    in bfloat16: it halves the memory and costs accuracy."""
    attention: Literal["auto", "sdpa", "flex_attention", "eager", "flash_attention_2"] = setting("model", "auto")
    """Attention implementation of transformers. auto: sdpa, and for prefix trees on a GPU FlexAttention if it works,
    which needs no dense mask; flex_attention: that or an error. Trees can't be computed by flash_attention_2."""
    gradient_checkpointing: bool = setting("model", False)
    """Recompute activations in the backward pass: less memory, about a third more time."""
    lora_rank: int = setting("model", 0, ge=0)
    """Rank of a new LoRA adapter; 0 trains all weights, or the adapter that the model's folder holds, which keeps
    its own rank and scale. The reference model is the model as it begins, such an adapter included."""
    lora_alpha: int = setting("model", 32, ge=1)
    """LoRA scale: the adapter's output is multiplied by lora_alpha / lora_rank."""
    lora_targets: Names = setting("model", ("all-linear",))
    """Names of the modules that get an adapter, or all-linear."""
    device: str = setting("model", "auto", holds="data")
    """Torch device that the model is loaded onto: cpu, cuda, cuda:1, or auto. A model that MSGRPOTrainer is given stays
    if it is."""

    scenarios: Names = setting("rollout", ())
    """Scenario names or environment ids to train on; groups are dealt to them in turn. Empty: the one given to the
    trainer."""
    groups: int = setting("rollout", 2, ge=1)
    """Groups per iteration. The episodes of a group start from the same initial state."""
    group_size: int = setting("rollout", 16, ge=2)
    """Episodes in a group."""
    shared_chance: bool = setting("rollout", False)
    """The episodes of a group share the environment's chance as well, as in the first author's code, so that equal
    answers lead to equal episodes. Otherwise each episode has its own."""
    max_steps: int = setting("rollout", 0, ge=0)
    """Most steps of a training episode; 0: the scenario's own."""
    temperature: float = setting("rollout", 1.25, gt=0)
    """Sampling temperature in training. The learner's log-probabilities apply it as well; there is no top-k or
    top-p."""
    response_mode: Literal["think", "direct"] = setting("rollout", "think")
    """What the prompt asks for: reasoning, plan and action, or the action alone."""
    legal_only: bool = setting("rollout", False)
    """At every position only tokens that lead to some legal answer are drawn, in evaluations as well, and the
    learner's probabilities are of these alone: no answer is invalid. In think mode what comes before the action is
    free."""
    prompt_file: str = setting("rollout", "", holds="data")
    """The prompts' wording: a TOML file (PromptMap.from_file) or the name of one that ships, such as without-clock.
    Empty: what the model was trained with, if textbench.json in its folder has it, else the built-in wording."""
    max_prompt_tokens: int = setting("rollout", 1500, ge=1)
    """Longest prompt. A longer one is an error, never cut."""
    max_response_tokens: int = setting("rollout", 256, ge=1)
    """Longest response. One that is cut off here is trained on like any other, and the rate is logged."""
    format_penalty: float = setting("rollout", 1.0, ge=0)
    """Subtracted from the reward of a step whose response is invalid."""
    invalid_action: Literal["default", "random", "noop", "terminate"] = setting("rollout", "default")
    """What an invalid response makes the environment do."""
    opponents: Mixture = table("rollout", "player")
    """Players of the other seats of games of several players, each with its weight: {checkpoint = 2, planner = 1}; one
    name, or a list of equal weights, will do. checkpoint is the model itself as it was at an earlier iteration, learner
    is the model in all seats, others are agents by name (random, hf:FOLDER). A group has one opponent and one seat for
    the model, which alone is learnt from; seats rotate. Empty: the model has all seats."""
    opponent_every: int = setting("rollout", 10, ge=1)
    """Iterations between the copies of the trained weights that checkpoint among the opponents is drawn from."""
    opponents_kept: int = setting("rollout", 5, ge=1)
    """Copies that it is drawn from, the latest ones, with equal chances. With LoRA the adapter alone is copied."""
    around: str = setting("rollout", "", holds="player")
    """A player around the model, as an agent is named, with learner in the model's place: advised(tiny, learner). It
    plays, in evaluations as well, and what the model answers inside is learnt from. Empty: the model plays."""
    around_options: dict[str, Any] = table("rollout", "data")
    """Options of that player, and of all others inside it, as agents have them."""
    cost: float = setting("rollout", 0.0, ge=0)
    """Subtracted from the reward of a decision, in evaluations as well, for each answer of the second player inside
    around: what a router(FIRST, SECOND, learner) is to use sparingly."""
    rollout_batch: int = setting("rollout", 0, ge=0)
    """Episodes in flight at once, refilled as episodes end; 0: all of an iteration."""

    game: dict[str, Any] = table("game")
    """Settings of the games that are trained on, such as size = 6, in place of the scenarios' own; those in a table of
    a scenario's name, [game.snake], are for that one alone."""

    engine: str = setting("engine", "live")
    """What samples the rollouts: live (the model that is trained, in this process), vllm (vLLM in this process, or on
    the servers of engine_urls), ray (actors on many machines), or my_module:MyEngine; see docs/engines.md."""
    engine_urls: Names = setting("engine", ())
    """Addresses of the servers that sample, such as http://127.0.0.1:8000; requests are shared among them. Empty: the
    engine runs in this process."""
    engine_options: dict[str, Any] = table("engine")
    """The engine's own options; docs/engines.md has those of each engine."""
    staleness: int = setting("engine", 0, ge=0)
    """How many updates behind the weights are that sample: 0 waits for every update; with k the rollouts of the next k
    iterations are played while the learner learns."""
    engine_tolerance: float = setting("engine", 0.0, ge=0)
    """After every update the engine and the learner score one fixed prompt's answer, and a mean difference above this,
    in nats per token, stops the run. 0: 0.001 if both compute in float32, else 0.1."""

    task_sampling: str = method("rollout", "plain", SAMPLERS)
    """How an iteration's episodes are chosen: plain draws training layouts evenly; others play again if all of a
    group fail, or choose layouts by what is learnt from them (docs/research/credit/methods.md)."""

    reward: str = method("advantages", "game", REWARDS)
    """The rule that pays steps in training: game, the game's own rewards alone, or one whose payments count beside or
    in place of them; docs/research/credit/methods.md has the rules. Scores and evaluations are the game's anyway."""
    reward_mode: Literal["auto", "add", "replace"] = setting("advantages", OWN)
    """The use of a rule's payments: added to the game's rewards, or in place of them (replace); auto: as the rule has
    it. Format penalties stay."""
    reward_weight: float = setting("advantages", 1.0)
    """Multiplies a rule's payments."""
    credit: str = method("advantages", "msgrpo", METHODS)
    """What every step is credited with: msgrpo, the paper's, gives it the whole episode's normalised return;
    docs/research/credit/methods.md has the others. A method's own settings stand in [credit.NAME]."""
    discount: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = setting("advantages", OWN)
    """Discount per step in returns and returns-to-go, of every method of credit; auto: the method's own, 1 in the paper
    and most others, 0.95 in gigpo and its relatives."""
    advantage_baseline: Literal["mean", "leave_one_out", "none"] = setting("advantages", "mean")
    """Subtracted from a return: its group's mean, the mean of the group's other episodes, or nothing."""
    advantage_scale: Literal["group_std", "batch_std", "none"] = setting("advantages", "group_std")
    """Divides the difference: the sample standard deviation of the group, that of the whole batch of differences,
    or 1."""
    advantage_eps: float = setting("advantages", 1e-6, gt=0)
    """Added to the standard deviation."""

    group_filter: str = method("sampling", "off", FILTERS)
    """Which groups are learnt from at all: off keeps all of them."""
    episode_sampling: str = method("sampling", "aaw", DRAWS)
    """How episodes are drawn for the update: |A|-weighted without replacement (aaw), with replacement, with
    replacement and the advantages divided by the weights (unbiased), the largest |A| alone (largest), half of them
    above and half below 0 (balanced), uniformly without replacement, uniformly among those with an advantage
    (uniform_nonzero), or not at all (off)."""
    episodes_drawn: int = setting("sampling", 0, ge=0)
    """M, the episodes that are drawn per iteration; 0: half of groups * group_size. Fewer are drawn without
    replacement where fewer have an advantage, or where a group filter leaves fewer. In games of several players every
    player's part is an episode of its own, and as large a share of the parts is drawn."""

    surrogate: str = method("loss", "ppo", SURROGATES)
    """What an advantage becomes in the loss of a token: ppo clips the token's ratio;
    docs/research/credit/methods.md has the others."""
    loss_normalizer: str = method("loss", "token", NORMALIZERS)
    """Z, which divides the summed loss: the response tokens, the steps or the episodes of the optimiser step's
    batch; response averages over each response first, micro_batch over the tokens of eight responses, constant divides
    by steps times max_response_tokens."""
    clip_low: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = setting("loss", OWN)
    """The ratio is clipped below at 1 - clip_low; auto: the surrogate's own, 0.2 in ppo and 0.0003 in gspo."""
    clip_high: Annotated[float, Field(ge=0)] | Literal["auto"] = setting("loss", OWN)
    """The ratio is clipped above at 1 + clip_high; auto: the surrogate's own, 0.2 in ppo and 0.0004 in gspo."""
    kl_coefficient: float = setting("loss", 0.0, ge=0)
    """beta of the KL term towards the reference model, the model as it was at the start; 0: no reference model is
    kept."""
    reference_mixup: float = setting("loss", 0.0, ge=0, le=1)
    """The share by which the reference model moves towards the policy after every update, as a moving average; 0: it
    stays the model as it was at the start. In self-play such a reference is a magnet."""
    kl_estimator: Literal["k2", "k3"] = setting("loss", "k3")
    """Per-token estimate of KL(policy || reference): r - 1 - log r (k3) or (log r)^2 / 2 (k2, whose gradient is the
    exact one on policy), r = p_ref / p."""
    entropy_coefficient: float = setting("loss", 0.001)
    """c_H of the entropy bonus, on the exact entropy of every response token's distribution."""
    old_logprobs: Literal["auto", "sampling", "recompute"] = setting("loss", "auto")
    """Where pi_old comes from: the sampler (sampling), a pass of the learner before the update (recompute), or the
    sampler exactly when the update is one full-batch step by the model that sampled (auto). With importance weights
    auto recomputes: they, and not the ratio, then tell how far the sampler is from the learner."""

    importance_cap: float = setting("loss", 2.0, ge=0)
    """Where the sampler isn't the learner (another engine, or staleness), a token's loss is weighted by the probability
    that the learner gives it divided by the sampler's, at most this much. 0: no weights."""

    iterations: int = setting("update", 600, ge=1)
    """Iterations of the run."""
    update_passes: int = setting("update", 1, ge=1)
    """Times that an iteration's drawn episodes are gone through."""
    minibatches: int = setting("update", 2, ge=1)
    """Optimiser steps per pass, over which the steps of all drawn episodes are dealt."""
    minibatch_order: Literal["shuffled", "time"] = setting("update", "shuffled")
    """The order in which they are dealt: at random (shuffled), or the first decisions of all episodes into the first
    minibatch (time), as in the first author's code."""
    learning_rate: float = setting("update", 1e-6, gt=0)
    """Peak learning rate of AdamW."""
    schedule: Literal["constant", "linear", "cosine"] = setting("update", "constant")
    """Learning rate after the warm-up: constant, or linear / cosine to zero after the last iteration."""
    warmup: int = setting("update", 0, ge=0)
    """Iterations over which the learning rate rises linearly from zero."""
    weight_decay: float = setting("update", 0.01, ge=0)
    """Decoupled weight decay, on matrices only."""
    adam_beta1: float = setting("update", 0.9, ge=0, le=0.9999)
    """AdamW's decay of the first moment."""
    adam_beta2: float = setting("update", 0.999, ge=0, le=0.99999)
    """AdamW's decay of the second moment."""
    adam_eps: float = setting("update", 1e-8, gt=0)
    """AdamW's epsilon."""
    max_grad_norm: float = setting("update", 1.0, ge=0)
    """Gradients are scaled down to this norm; 0: never."""
    abort_grad_norm: float = setting("update", 1e4, ge=0)
    """A gradient norm above this stops the run, as a NaN does; 0: never."""
    packing: Literal["tree", "rows"] = setting("update", "tree")
    """Shape of a micro-batch: token trees in which equal prefixes are computed once, or length-sorted padded rows.
    Trees fall back to rows for a model that they don't fit, with a note."""
    micro_batch_tokens: int = setting("update", 8192, ge=1)
    """Tokens of one forward and backward pass, padding included; bounds the memory and does not change the
    gradient."""
    tree_tokens: int = setting("update", 0, ge=0)
    """Longest token tree; longer steps get a tree of their own. Attention within a tree is quadratic, so small
    models want small trees. 0: four times the model's width, between 256 and 4096, on a CPU at most 1024."""
    logprob_chunk_tokens: int = setting("update", 1024, ge=1)
    """Rows of the tokens x vocabulary matrix that exist at once."""

    critic_learning_rate: float = setting("critic", 1e-5, gt=0)
    """Learning rate of the critic, which exists only if a method needs values. It is constant; the rest of its AdamW
    is the policy's. A reward model's rate is a setting of its method."""
    critic_passes: int = setting("critic", 1, ge=1)
    """Passes of the critic over each iteration's steps: all that credit was assigned to, drawn or not."""
    critic_minibatches: int = setting("critic", 2, ge=1)
    """Optimiser steps of the critic per pass; a reward model takes one."""
    critic_clip: float = setting("critic", 0.5, ge=0)
    """A value that moved further than this from what it was before the iteration's steps is learnt no more; in units of
    return. 0: never."""
    critic_warmup: int = setting("critic", 0, ge=0)
    """Iterations at the start in which the critic learns and the policy doesn't."""
    critic_max_grad_norm: float = setting("critic", 1.0, ge=0)
    """The critic's gradients are scaled down to this norm; 0: never."""

    eval_every: int = setting("evaluation", 50, ge=0)
    """Iterations between evaluations, which also take place before the first and after the last; 0: none."""
    eval_scenarios: Names = setting("evaluation", ())
    """Scenarios to evaluate on; empty: those trained on."""
    eval_game: dict[str, Any] = table("evaluation")
    """Settings of the games in evaluation, in the form of [game], which counts in training alone. Empty: the
    scenarios' own."""
    eval_episodes: int = setting("evaluation", 50, ge=1)
    """Episodes per evaluation scenario: episode k has seed first_seed + k."""
    eval_temperature: float = setting("evaluation", 0.5, ge=0)
    """Sampling temperature in evaluation; 0: greedy."""
    eval_protocol: Literal["random", "default", "forfeit", "retry"] = setting("evaluation", "random")
    """What an invalid response leads to in evaluation: random plays a legal move by chance, so that a model that
    answers nothing scores what random play does; docs/benchmark.md has the others."""
    eval_opponent: str = setting("evaluation", "", holds="player")
    """The agent in the other seats of games of several players, by its name (random, planner, hf:FOLDER); the
    model then plays every seat in turn, on the same seeds. Empty: the model has all seats."""
    eval_regret_episodes: int = setting("evaluation", 0, ge=0)
    """Also measure the model's exact regret per decision, at the positions of so many random episodes with the
    evaluation's seeds: for games with an exact yardstick, in direct mode. 0: not measured."""
    eval_exploitability: bool = setting("evaluation", False)
    """Also measure the model's exploitability, what a best response to it gains: for small zero-sum games of two, such
    as kuhn-poker, in direct mode."""

    preflight_episodes: int = setting("stopping", 64, ge=0)
    """Before the first update, at most so many episodes of the first iteration (whole groups, one at least) are played
    and looked at: a model that hardly answers validly, or a prompt that is too long, is refused. 0: none."""
    min_valid_share: float = setting("stopping", 0.1, ge=0, le=1)
    """Least share of valid responses. A model that is surely below it before the first update is refused; a run that
    falls below it, or below half of its own best share, is stopped. 0: such a run continues."""
    stop_after: int = setting("stopping", 10, ge=0)
    """Iterations in a row after which a run is stopped that has lost the form of answers, its entropy without a gain in
    return, or whose gradient norms are far out; in a run of less than twice as many, after half of them. It is saved
    as it was before. 0: a run is never stopped by these signs, nor by skipped updates."""
    stop_after_skipped: int = setting("stopping", 30, ge=0)
    """Skipped updates in a row after which a run is stopped, unless all episodes succeed; in a run of less than twice
    as many iterations, after half of them. 0: never."""
    min_entropy: float = setting("stopping", 1e-4, ge=0)
    """Entropy in nats per token below which it counts as gone."""
    max_grad_norm_rise: float = setting("stopping", 100.0, ge=0)
    """A gradient norm above so many times the run's median counts as far out; 0: never. One alone above
    abort_grad_norm stops a run at once."""

    seed: int = setting("run", 0, ge=0)
    """Seed of the run: episodes, draws and shuffles follow from it and the iteration's number."""
    out: str = setting("run", "", holds="data")
    """Folder of checkpoints, metrics and samples; empty: nothing is written."""
    checkpoint_every: int = setting("run", 50, ge=0)
    """Iterations between checkpoints; the last one is always saved. 0: only that one."""
    keep_checkpoints: int = setting("run", 1, ge=1)
    """Checkpoints kept besides the best one."""
    rollback: bool = setting("run", True)
    """Keep a copy of what is trained and of its optimiser's state in the computer's memory from before each update, so
    that a run which diverges or fails within one is saved as it was before. It takes as much memory as these do.
    Without it, or if weights are sharded over processes, such a run goes back to its last checkpoint."""
    samples_every: int = setting("run", 10, ge=0)
    """Iterations between sample episodes written to samples.txt; 0: none."""
    samples_shown: int = setting("run", 2, ge=1)
    """Episodes written each time."""
    trackers: TrackerNames = setting("run", ())
    """Where metrics and settings go besides metrics.jsonl, by the trackers of accelerate: tensorboard writes to the
    run's folder, wandb to Weights & Biases (WANDB_MODE=offline: to the run's folder), and so on. They need out."""
    tracker_project: str = setting("run", "textbench", holds="data")
    """The project or experiment in trackers that have such."""
    tracker_run: str = setting("run", "", holds="data")
    """The run's name in trackers; empty: that of the folder out."""
    threads: int = setting("run", 0, ge=0)
    """Torch's CPU threads; 0: as they are."""

    method_settings: dict[str, dict[str, dict[str, Any]]] = table("methods")
    """The methods' own settings, {point: {method: {setting: value}}}; in a file they stand in [credit.NAME],
    [draw.NAME], [filter.NAME], [surrogate.NAME], [normalizer.NAME], [tasks.NAME] and [reward.NAME]."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        for registry in (*POINTS.values(), ENGINES):
            registry.check(getattr(self, registry.setting))
        for point, tables in self.method_settings.items():
            if point not in POINTS:
                raise ValueError(f"[{point}] holds no methods; accepted: {', '.join(POINTS)}")
            for name in tables:
                POINTS[point].check(name)
        if self.episodes_drawn > self.episodes:
            raise ValueError(
                f"episodes_drawn = {self.episodes_drawn}: an iteration has groups * group_size = {self.episodes} "
                f"episodes; accepted: 1 to {self.episodes}, or 0 for half of however many they are"
            )
        if self.engine == "live" and (self.engine_urls or self.engine_options):
            name, value = next((n, v) for n in ("engine_urls", "engine_options") if (v := getattr(self, n)))
            raise ValueError(
                f"{name} = {value!r} with engine = 'live', which samples in this process and has no options; accepted "
                "with engine = 'vllm' or 'ray'"
            )
        if self.staleness and self.task_sampling != "plain":
            raise ValueError(
                f"staleness = {self.staleness} with task_sampling = {self.task_sampling!r}: what it plays depends on "
                "what was just learnt, and can't be played ahead; accepted: staleness = 0, or task_sampling = 'plain'"
            )
        if self.reward == "game" and (self.reward_mode != OWN or self.reward_weight != 1):
            raise ValueError(
                f"reward_mode = {self.reward_mode!r} and reward_weight = {self.reward_weight:g} with reward = 'game', "
                "which is no rule: name one (reward = 'length') or leave both out"
            )
        if (self.cost or self.around_options) and not self.around:
            name, value = ("cost", self.cost) if self.cost else ("around_options", self.around_options)
            raise ValueError(f"{name} = {value!r} without a player around the model: set around as well")
        if self.around:
            asking = [name for name in ("eval_regret_episodes", "eval_exploitability") if getattr(self, name)]
            points: tuple[Registry[Any], ...] = METHODS, SAMPLERS, REWARDS
            asking += [one.setting for one in points if one.find(getattr(self, one.setting)).asks_alone]
            for name in asking:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r} asks the model for moves of its own, and around = "
                    f"{self.around!r} has it play inside another player; accepted is one of them"
                )
        if self.old_logprobs == "sampling" and not self.strictly_on_policy and not self.staleness:
            raise ValueError(
                f"old_logprobs = 'sampling' with update_passes = {self.update_passes} and minibatches = "
                f"{self.minibatches}: accepted only with one full-batch step (both 1); otherwise 'auto' or 'recompute'"
            )
        if self.trackers and not self.out:
            raise ValueError(f"trackers = {list(self.trackers)} without a folder of the run: set out as well")
        if self.packing == "tree" and self.attention == "flash_attention_2":
            raise ValueError(
                "attention = 'flash_attention_2' has no masks for packing = 'tree'; accepted with it: auto, sdpa, "
                "flex_attention, eager"
            )
        if self.packing == "rows" and self.attention == "flex_attention":
            raise ValueError("attention = 'flex_attention' is for packing = 'tree', got packing = 'rows'")
        if self.dtype == "float32" and self.param_dtype == "bfloat16":
            raise ValueError("dtype = 'float32' with param_dtype = 'bfloat16': accepted for such weights: 'bfloat16'")
        return self

    @property
    def episodes(self) -> int:
        """N, the episodes of one iteration."""
        return self.groups * self.group_size

    @property
    def draws(self) -> int:
        """M, the episodes drawn for the update."""
        if self.episode_sampling == "off":
            return self.episodes
        return self.episodes_drawn or max(1, self.episodes // 2)

    def draws_of(self, trajectories: int) -> int:
        """M if several players' parts make more trajectories than there are episodes: the same share of them.

        A group filter leaves M as it is, so what it changes is whose episodes are drawn, and not how many.
        """
        return max(1, round(self.draws * trajectories / self.episodes))

    @property
    def strictly_on_policy(self) -> bool:
        """Whether the model that is updated is always exactly the one that sampled."""
        return self.update_passes == 1 and self.minibatches == 1
