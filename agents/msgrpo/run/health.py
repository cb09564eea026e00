"""Is a run worth beginning, and worth continuing?

* The preflight looks at a few episodes before the first update: updates do nothing if the base doesn't know the form of
  answers, or if the returns of every group are equal.
* The canary has the engine and the learner score the answer to one fixed prompt after every update. It finds weights
  that arrived in part or not at all, log-probabilities of another distribution, and models that differ.
* The watch reads the metrics of every iteration and stops a run that learns nothing any more. A sign has to stand for
  several iterations in a row, relative to the run itself, since a good run may begin anywhere.
"""

import shlex
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import binom

from agents.baselines.search import find_search_player
from agents.common.files import check_writable
from agents.episode import Episode, EpisodeTask
from agents.models.base import Decoding
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch, TokenRow, Trajectory
from agents.msgrpo.engines.engine import Engine
from agents.msgrpo.errors import ConfigError, DeadRunError, RolloutError, UnusableModelError
from agents.msgrpo.filters import spreads
from agents.msgrpo.learner.prepare import product_dtype
from agents.msgrpo.learner.update import Learner
from agents.msgrpo.trajectories import (
    Game,
    game_name,
    game_task,
    paid_by_the_game,
    prompts_of_random_play,
    too_long,
    trajectories_of,
    tsmg_of,
    with_settings,
)
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Message

# ---------------------------------------------------------------- advice


def another_start(config: MSGRPOConfig) -> str:
    """Return the ways out for a model that doesn't answer in the form that is asked for."""
    other = "direct" if config.response_mode == "think" else "think"
    ways = [f"a warm start ({warm_start(config)})"]
    if config.model != "tiny-legal" and config.scenarios and all(tsmg_of(name).actions for name in config.scenarios):
        ways.append("model = 'tiny-legal' with response_mode = 'direct' (a tiny base that is made for the scenarios)")
    return f"{', '.join(ways)}, or response_mode = {other!r} if the model was made for that"


def warm_start(config: MSGRPOConfig) -> str:
    """Return the command that teaches a model the form of answers, and the games as far as a planner knows them."""
    planned = config.scenarios and all(find_search_player(tsmg_of(name)) is not None for name in config.scenarios)
    teacher = "planner" if planned else "random"
    parts = {
        "--model": [config.model or "MODEL"],
        "--scenario": config.scenarios or ["SCENARIO"],
        "--teacher": [teacher],
        "--mode": [config.response_mode],
        "--prompts": [config.prompt_file] if config.prompt_file else [],
    }
    options = [f"{flag} {shlex.join(values)}" for flag, values in parts.items() if values]
    return f"textbench warmup {' '.join(options)}{' --legal-only' if config.legal_only else ''}"


def against_collapse(config: MSGRPOConfig) -> str:
    """Return the ways out if the format penalty is all that a model learns from."""
    ways = [f"a warm start ({warm_start(config)})"]
    if not config.legal_only:
        ways.append("legal_only = true, which leaves no answer to charge a penalty for")
    ways.append(f"a larger entropy_coefficient (now {config.entropy_coefficient:g})")
    if config.format_penalty:
        ways.append(
            f"format_penalty = 0 (now {config.format_penalty:g}) with invalid_action = 'random' (now "
            f"{config.invalid_action!r})"
        )
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


# ---------------------------------------------------------------- before the first episode

RANDOM_EPISODES = 4
"""Whole episodes of random play whose prompts are measured: a game's prompts may grow while it is played."""
LONGEST_READ = 8
"""The number of an episode's longest prompts in letters that are measured in tokens."""


def check_prompts(
    config: MSGRPOConfig, games: Sequence[Game], prompt_map: PromptMap, reader: TransformersModel
) -> None:
    """Refuse games whose prompts, with a response behind them, don't fit, as far as random play shows."""
    shorter: dict[str, Any] = {"max_steps": config.max_steps} if config.max_steps else {}
    places = [(game, shorter) for game in games]
    places += [(with_settings(game, config.eval_game), {}) for game in config.eval_scenarios]
    for game, settings in places:
        tasks = [game_task(game, seed, **settings) for seed in range(RANDOM_EPISODES)]
        longest = max(length for task in tasks for length in prompt_lengths(task, prompt_map, reader))
        if longest > config.max_prompt_tokens:
            raise too_long(longest, config.max_prompt_tokens)
        context = reader.context_length
        if context is not None and longest + config.max_response_tokens > context:
            raise UnusableModelError(
                f"{game_name(game)}: its prompt has {longest} tokens, max_response_tokens is "
                f"{config.max_response_tokens} and the model's context {context}: too little room"
            )


def prompt_lengths(task: EpisodeTask, prompt_map: PromptMap, reader: TransformersModel) -> list[int]:
    """Return the lengths in tokens of the first prompt and the longest ones of an episode of random play."""
    prompts = [prompt for _, prompt in prompts_of_random_play(task, prompt_map)]
    by_letters = sorted(prompts, key=lambda prompt: -sum(len(message.content) for message in prompt))
    return [len(ids) for ids in reader.encode(prompts[:1] + by_letters[:LONGEST_READ])]


def check_out(out: Path, *, resumed: bool = False) -> None:
    """Refuse a folder that can't be written, or a new run in another one's."""
    check_writable(out)
    metrics = out / "metrics.jsonl"
    if resumed or not metrics.exists() or not metrics.stat().st_size:
        return
    if (out / "last").exists():
        raise ConfigError(
            f"out = {str(out)!r} already holds a run: go on with --resume {shlex.quote(str(out))}, or choose another "
            "folder"
        )
    raise ConfigError(
        f"out = {str(out)!r} holds the metrics of a run that was stopped before its first checkpoint, and can't go on: "
        f"remove the folder, or choose another one"
    )


# ---------------------------------------------------------------- the preflight

FEW_VALID = 0.5
"""A share of valid answers below which a run may begin, but with a warning."""
NEAR_THE_LIMIT = 0.9
"""The share of ``max_prompt_tokens`` from which a run is warned: a longer episode may well have a longer prompt."""


class Preflight(NamedTuple):
    """The findings of the first episodes of a run.

    Groups with spread have returns that aren't all equal, and those paid apart even without the penalty.
    """

    episodes: int
    answers: int
    valid: int
    groups: int
    groups_with_spread: int
    groups_paid_apart: int
    all_succeeded: bool
    longest_prompt: int

    @classmethod
    def of(cls, trajectories: Sequence[Trajectory], episodes: int, format_penalty: float) -> "Preflight":
        batch = Batch(trajectories)
        paid = np.array([paid_by_the_game(each, format_penalty) for each in trajectories], dtype=np.float64)
        return cls(
            episodes=episodes,
            answers=sum(map(len, trajectories)),
            valid=sum(int(each.valid.sum()) for each in trajectories),
            groups=len(batch.groups),
            groups_with_spread=int(np.count_nonzero(spreads(batch))),
            groups_paid_apart=int(np.count_nonzero(spreads(batch, paid))),
            all_succeeded=all(each.success for each in trajectories),
            longest_prompt=max((len(ids) for each in trajectories for ids in each.prompt_ids), default=0),
        )

    def summary(self, config: MSGRPOConfig) -> str:
        return (
            f"before the first update, {self.episodes} episodes: {self.valid / max(1, self.answers):.1%} of "
            f"{self.answers:,} answers valid, returns differ in {self.groups_with_spread} of {self.groups} groups, "
            f"longest prompt {self.longest_prompt} of {config.max_prompt_tokens} tokens"
        )

    def check(self, config: MSGRPOConfig) -> list[str]:
        if self.longest_prompt > config.max_prompt_tokens:
            raise too_long(self.longest_prompt, config.max_prompt_tokens)
        # a model that has the least share would show so few valid answers less than once in twenty preflights
        if binom.cdf(self.valid, self.answers, config.min_valid_share) < 0.05:
            raise UnusableModelError(
                f"{self.valid} of {self.answers:,} answers in {self.episodes} episodes were valid in response_mode = "
                f"{config.response_mode!r}: the model doesn't answer in the form that is asked for, and wouldn't learn "
                f"(min_valid_share = {config.min_valid_share:g}). What helps: {another_start(config)}. "
                "min_valid_share = 0 trains it regardless"
            )
        warnings = []
        if self.valid < FEW_VALID * self.answers:
            warnings.append(
                f"few answers are valid, and the form has to be learnt first; easier: {another_start(config)}"
            )
        if not self.groups_with_spread:
            warnings.append(
                "every episode succeeds: there is nothing to learn here"
                if self.all_succeeded
                else "no group has returns that differ, and such groups teach nothing: a larger group_size (now "
                f"{config.group_size}) or temperature (now {config.temperature:g}), or an easier scenario"
            )
        elif not self.groups_paid_apart:
            warnings.append(
                "returns differ by the format penalty alone: it is all there is to learn from, and a run whose first "
                "success doesn't come soon ends in format collapse, with one answer to everything. What helps: "
                f"{against_collapse(config)}"
            )
        if self.longest_prompt > NEAR_THE_LIMIT * config.max_prompt_tokens:
            warnings.append(
                f"the longest prompt has {self.longest_prompt} tokens, near max_prompt_tokens = "
                f"{config.max_prompt_tokens}, and a longer one would end the run: raise it"
            )
        return warnings


def fly(
    config: MSGRPOConfig,
    tasks: Sequence[EpisodeTask],
    policy: LanguageAgentPolicy,
    play: Callable[[LanguageAgentPolicy, Sequence[EpisodeTask]], list[Episode]],
    say: Callable[[str], None],
) -> None:
    """Play whole groups of an iteration's tasks, as training does, and say what they show."""
    some = tasks[: max(1, config.preflight_episodes // config.group_size) * config.group_size]
    preflight = Preflight.of(trajectories_of(play(policy, some), some), len(some), config.format_penalty)
    say(preflight.summary(config))
    for warning in preflight.check(config):
        say(f"warning: {warning}")


# ---------------------------------------------------------------- the canary

PROMPT = (
    Message("user", "The weights are compared by what they make of this sentence, which no game contains: 1 2 3"),
)
"""No game's prompt: a trained model is sure of its answers there, whatever its last update was."""
TOKENS, SEED = 16, (0xCA7A,)
FLOAT32_TOLERANCE, HALF_TOLERANCE = 1e-3, 0.1
"""Nats per token, on average over an answer, if both compute in float32, and if one doesn't."""


class Canary:
    """Compares the engine's weights with the learner's; call it after every update, in all processes.

    ``difference`` is the mean absolute difference in nats per token, of the worst answer in the latest comparison.
    """

    def __init__(self, engine: Engine, learner: Learner, config: MSGRPOConfig) -> None:
        self.engine, self.learner = engine, learner
        exact = product_dtype(config) == "float32" and config.param_dtype == "float32"
        self.tolerance = config.engine_tolerance or (FLOAT32_TOLERANCE if exact else HALF_TOLERANCE)
        self._decoding = Decoding(temperature=config.temperature, max_tokens=TOKENS, stop=())
        self.difference = 0.0

    def __call__(self) -> None:
        processes = self.learner.processes
        asks = processes.rank == 0 or not self.engine.shared
        mine = self.engine.answers(PROMPT, self._decoding, SEED) if asks else []
        answers = [answer for part in processes.gather(mine) for answer in part]
        places = len(answers)
        for number, answer in enumerate(answers, 1):
            if answer.error is not None:
                raise RolloutError(f"answer {number} of {self.engine.name} to the fixed prompt failed: {answer.error}")
            if not answer.prompt_ids or not answer.response_ids:
                raise RolloutError(f"{self.engine.name} returned no token ids, which are what the learner trains on")
        answers = [answer for answer in answers if answer.logprobs is not None]
        rows = [TokenRow(answer.prompt_ids or (), answer.response_ids or ()) for answer in answers]
        scores = self.learner.logprobs(rows) if rows else []
        theirs = [torch.tensor(answer.logprobs, dtype=torch.float64) for answer in answers]
        differences = [(mine - its).abs().mean().item() for mine, its in zip(scores, theirs, strict=True)]
        self.difference = max(differences, default=0.0)
        if self.difference <= self.tolerance:
            return
        worst = differences.index(self.difference)
        where = f" (place {worst + 1} of {places})" if places > 1 else ""
        raise RolloutError(
            f"the engine {self.engine.name!r}{where} doesn't have the learner's weights: on one fixed prompt their "
            f"log-probabilities differ by {self.difference:.3g} nats per token, and {self.tolerance:g} is allowed "
            f"(engine_tolerance). {self._likely(rows[worst], theirs[worst])}"
        )

    def _likely(self, row: TokenRow, theirs: torch.Tensor) -> str:
        scorer = self.learner.scorer
        temperature, scorer.temperature = scorer.temperature, 1.0
        try:
            (unscaled,) = self.learner.logprobs([row])
        finally:
            scorer.temperature = temperature
        if temperature != 1 and (unscaled - theirs).abs().mean().item() <= self.tolerance:
            return (
                "They agree at temperature 1: the engine tells log-probabilities before the temperature is applied; "
                "start vLLM's server with --logprobs-mode processed_logprobs"
            )
        if getattr(scorer.causal_lm.config, "tie_word_embeddings", False):
            return (
                "The model's output layer is tied to its embedding: vLLM on a CPU keeps a packed copy of it, which a "
                "reload of weights doesn't renew (docs/engines.md has what works)"
            )
        return (
            "Likely causes: an update that didn't arrive, another model or tokenizer behind the engine, or another "
            "type of numbers (dtype); docs/engines.md tells how to find out"
        )


# ---------------------------------------------------------------- the watch

NORMS_KEPT = 100
"""Iterations whose gradient norms are what is usual."""

FIRST = 3
"""Iterations that a run begins with, for format collapse, which may take no more than a dozen."""
FORM_GAINED, ENTROPY_LEFT, ONE_ANSWER = 0.2, 0.5, 0.9
"""Format collapse: the valid share is so much higher than at first, the entropy at most this share of what it was, and
one action this share of all valid answers, while the game pays no more than at first."""


class Watch:
    """Looks at every iteration's metrics in turn; ``rows``: for each sign, how many of the latest in a row show it."""

    def __init__(self, config: MSGRPOConfig, history: Iterable[Mapping[str, Any]] = ()) -> None:
        self.config = config
        half = max(5, config.iterations // 2)  # in a short run half of it, or it would end before a sign stands
        self._patience = min(config.stop_after, half)
        self._skips = min(config.stop_after_skipped, half)
        self.rows = {"skipped": 0, "invalid": 0, "entropy": 0, "gradient": 0, "collapse": 0}
        self._valid: list[float] = []  # of the iterations without the sign, at most as many as are patience
        self._best_valid = 0.0
        self._returns: list[float] = []
        self._in_vain = 0  # iterations whose update was skipped though not everything was won
        self._paid: list[float] = []  # without the format penalty
        self._first: list[tuple[float, float]] = []  # valid share and entropy of the first iterations with an update
        self._norms: deque[float] = deque(maxlen=NORMS_KEPT)
        for metrics in history:
            self.see(metrics)
        self.rows = dict.fromkeys(self.rows, 0)  # a run that was stopped and is resumed gets the time to recover

    def _answers_validly(self, invalid_rate: float) -> bool:
        return 1 - invalid_rate >= max(self.config.min_valid_share, self._best_valid / 2)

    @property
    def suspects(self) -> bool:
        """Whether the latest iteration shows a sign that its weights are worse than earlier ones."""
        return any(self.rows[sign] and self._spoils(sign) for sign in self.rows)

    def trusts(self, invalid_rate: float) -> bool:
        """Return whether weights that have just played with this share of invalid responses are worth keeping."""
        return not self.suspects and (self._answers_validly(invalid_rate) or not self._spoils("invalid"))

    def see(self, metrics: Mapping[str, Any]) -> None:
        returns, some = self._returns, max(1, self.config.stop_after)
        returns.append(metrics["return"])
        self._paid.append(metrics.get("game_return", metrics["return"]))  # runs of earlier versions lack the first
        # an update is also skipped if everything is won, which is the end of learning and not its failure
        in_vain = bool(metrics["skipped"]) and metrics["success"] < 1
        self._in_vain += in_vain
        self._count("skipped", in_vain)
        if self.config.min_valid_share:
            self._count("invalid", not self._answers_validly(metrics["invalid_rate"]))
        learnt, norm, rise = bool(metrics["optimizer_steps"]), metrics["grad_norm"], self.config.max_grad_norm_rise
        if learnt:  # else neither entropy nor gradient is known
            gained = len(returns) > some and np.mean(returns[-some:]) > np.mean(returns[:some])
            self._count("entropy", metrics["entropy"] < self.config.min_entropy and not gained)
            usual = float(np.median(self._norms)) if rise and len(self._norms) >= some else np.inf
            self._count("gradient", norm > rise * usual)
            self._count("collapse", self._collapsed(metrics))
        if not self.rows["gradient"] and learnt:
            self._norms.append(norm)
        if not self.rows["invalid"]:
            self._valid = [*self._valid, 1 - metrics["invalid_rate"]][-max(1, self.config.stop_after) :]
            self._best_valid = max(self._best_valid, float(np.mean(self._valid)))

    def check(self) -> None:
        if not self.config.stop_after:
            return
        if self._skips and self.rows["skipped"] >= self._skips and not self.rows["invalid"]:
            raise self._dead("skipped")
        for sign in ("collapse", "invalid", "entropy", "gradient"):
            if self.rows[sign] >= self._patience:
                raise self._dead(sign)

    def check_end(self) -> None:
        """Raise a DeadRunError if all updates of a run were skipped, and not because everything was won."""
        if self.config.stop_after and self._in_vain == len(self._returns) > 0:
            self.rows["skipped"] = self._in_vain  # in a resumed run as well
            raise self._dead("skipped")

    def _spoils(self, sign: str) -> bool:
        return bool(self._best_valid) if sign == "invalid" else sign not in ("skipped", "collapse")

    def _count(self, sign: str, shown: bool) -> None:
        self.rows[sign] = self.rows[sign] + 1 if shown else 0

    def _collapsed(self, metrics: Mapping[str, Any]) -> bool:
        """Return whether the form has been learnt and nothing else: one answer to all, which the game doesn't pay."""
        valid, entropy = 1 - metrics["invalid_rate"], metrics["entropy"]
        if len(self._first) < FIRST:
            self._first.append((valid, entropy))
            return False
        first_valid, first_entropy = np.mean(self._first, axis=0)
        return bool(
            valid >= first_valid + FORM_GAINED
            and entropy <= ENTROPY_LEFT * first_entropy
            and metrics.get("most_frequent_action", 0.0) >= ONE_ANSWER
            and np.mean(self._paid[-FIRST:]) <= np.mean(self._paid[:FIRST])  # known sooner than by stop_after
        )

    def _dead(self, sign: str) -> DeadRunError:
        config, count = self.config, self.rows[sign]
        lower = f"Lower learning_rate (now {config.learning_rate:g})"
        told, advice = {
            "skipped": (
                f"all updates of the last {count} iterations were skipped, as the episodes of every group had equal "
                f"returns (the last mean is {self._returns[-1]:g}): there was nothing to learn from",
                f"Give it more to compare (group_size, now {config.group_size}; temperature, now "
                f"{config.temperature:g}), an easier scenario, or {another_start(config)}",
            ),
            "invalid": (
                f"for {count} iterations nearly all responses were invalid"
                + (f" (before, {self._best_valid:.1%} were valid)" if self._best_valid else ""),
                f"{lower} or raise format_penalty (now {config.format_penalty:g})"
                if self._best_valid
                else f"The model doesn't know the form of answers: {another_start(config)}",
            ),
            "entropy": (
                f"for {count} iterations the entropy was below min_entropy = {config.min_entropy:g} nats per token, "
                "with no more return than at the start: the model answers the same whatever happens",
                f"{lower} or raise entropy_coefficient (now {config.entropy_coefficient:g})",
            ),
            "collapse": (
                f"format collapse: for {count} iterations one action has been nearly all of the valid answers, and the "
                "game pays no more than at the start. The format penalty was the only signal, so the form was learnt "
                "and the first answer that had it",
                f"What helps, from the base again: {against_collapse(config)}",
            ),
            "gradient": (
                f"for {count} iterations the gradient norm was above max_grad_norm_rise = "
                f"{config.max_grad_norm_rise:g} times what is usual in this run",
                f"{lower} or max_grad_norm (now {config.max_grad_norm:g})",
            ),
        }[sign]
        return DeadRunError(
            f"iteration {len(self._returns)}: the run is dead: {told}. {advice}; stop_after = 0 trains on regardless",
            spoiled=self._spoils(sign),
        )
