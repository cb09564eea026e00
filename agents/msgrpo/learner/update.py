"""One iteration's optimiser steps: rows in, changed weights and statistics out.

Gradients are normalised over the whole batch of an optimiser step, so the size of micro-batches does not change them.

The KL term and some surrogates hold the policy to a reference: the model as it was at the start, or one that follows
the policy as a moving average, which in self-play is a magnet (magnetic mirror descent, arXiv 2206.05825).
"""

import copy
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch, TokenRow
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.loss import importance_weights, loss_of, mismatch
from agents.msgrpo.learner.prepare import copy_of_trained
from agents.msgrpo.learner.scoring.packing import MicroBatch, SharedWork
from agents.msgrpo.learner.scoring.scorer import TokenScorer, score_with
from agents.msgrpo.normalizers import NORMALIZERS, Normalizer
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.surrogates.tokens import Surrogate, Tokens


@dataclass(slots=True)
class UpdateStats:
    """The sums over an iteration's optimiser steps, for the log."""

    sums: dict[str, float] = field(default_factory=dict)
    grad_norms: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    mismatch: dict[str, float] = field(default_factory=dict)
    importance: dict[str, float] = field(default_factory=dict)
    computed_tokens: int = 0  # tokens that went through the model with a gradient in this process, padding included

    def metrics(self) -> dict[str, float]:
        tokens = max(self.sums.get("tokens", 0.0), 1.0)
        names = ("kl", "entropy", "ratio", "kl_old", "policy_loss")
        result = {name: self.sums.get(name, 0.0) / tokens for name in names}
        result["clip_fraction_low"] = self.sums.get("clipped_low", 0.0) / tokens
        result["clip_fraction_high"] = self.sums.get("clipped_high", 0.0) / tokens
        result["clip_fraction"] = result["clip_fraction_low"] + result["clip_fraction_high"]
        result["loss"] = float(np.mean(self.losses)) if self.losses else 0.0
        result["grad_norm"] = float(np.mean(self.grad_norms)) if self.grad_norms else 0.0
        result["optimizer_steps"] = len(self.grad_norms)
        return result | self.mismatch | self.importance | {"update_tokens_computed": float(self.computed_tokens)}


def token_metrics(
    rows: Sequence[TokenRow], response_tokens: float, started: float, rolled_out: float, updated: float
) -> dict[str, float]:
    """Return how many tokens an iteration learnt from, and how fast it was; the last three are moments, in seconds."""
    trained = sum(len(row.prompt) + len(row.response) for row in rows)
    return {
        "update_tokens": trained,
        "rollout_tokens_per_second": response_tokens / (rolled_out - started),
        "update_tokens_per_second": trained / max(updated - rolled_out, 1e-9),
        "rollout_seconds": rolled_out - started,
        "update_seconds": updated - rolled_out,
        "seconds": updated - started,
    }


def minibatches(
    rows: Sequence[Any], count: int, rng: np.random.Generator, times: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """Deal the steps of all episodes over ``count`` minibatches: at random, or in the order of their ``times``."""
    order = rng.permutation(len(rows)) if times is None else np.argsort(times, kind="stable")
    for part in np.array_split(order, min(count, len(rows))):
        yield part.tolist()


def make_reference(
    scorer: TokenScorer, processes: Processes, config: MSGRPOConfig, needs: Collection[str]
) -> "Reference | None":
    """Return the reference of a training; ``None`` if neither the KL term nor the surrogate, by its needs, wants it."""
    if config.kl_coefficient or "reference" in needs:
        return Reference(scorer, processes, config.reference_mixup)
    if config.reference_mixup:
        raise ConfigError(
            f"reference_mixup = {config.reference_mixup:g} moves a reference that nothing is held to: set "
            "kl_coefficient above 0 as well"
        )
    return None


class Reference:
    """The model that the policy is held to. Make it before the first update and before a checkpoint is loaded.

    With a fresh adapter it is the same model with the adapter switched off, if it stays what it is. Otherwise it is a
    frozen copy of what is trained, which shares the rest; if weights are sharded, the copy is whole. ``mixup`` is the
    share that it moves towards the policy after every update.
    """

    def __init__(self, scorer: TokenScorer, processes: Processes, mixup: float = 0.0) -> None:
        if mixup and processes.sharded:
            raise ConfigError(
                f"reference_mixup = {mixup:g} with sharded weights: accepted where every process has all of them (DDP)"
            )
        self._scorer, self._processes, self._mixup = scorer, processes, mixup
        adds_nothing = not any(weight.any() for name, weight in scorer.model.named_parameters() if "lora_B" in name)
        self._switch_off = getattr(scorer.model, "disable_adapter", None) if adds_nothing and not mixup else None
        if self._switch_off is None:
            own = copy.deepcopy(scorer) if processes.sharded else copy_of_trained(scorer)
            self._frozen = own.requires_grad_(False).eval()
        trained = {name for name, each in scorer.named_parameters() if each.requires_grad}
        frozen = self._frozen.named_parameters() if mixup else ()
        self._moving = {name: each for name, each in frozen if name in trained}

    def score(self, batch: MicroBatch) -> Tensor:
        if self._switch_off is None:
            return self._frozen.score(batch)[0]
        with self._switch_off():
            return score_with(self._scorer, self._processes.forward, batch)[0]

    @torch.no_grad()
    def follow(self) -> None:
        policy = dict(self._scorer.named_parameters())
        for name, own in self._moving.items():
            own.lerp_(policy[name], self._mixup)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights that have moved, by name; empty if it stays what it was."""
        return dict(self._moving)

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor] | None) -> None:
        """Take up what :meth:`state_dict` returned; nothing, in checkpoints from before references moved."""
        if state and not self._mixup:
            raise ConfigError(
                "reference_mixup = 0, but the checkpoint's reference was moved by a reference_mixup above 0: accepted "
                "is above 0, or a new run from the checkpoint's model"
            )
        for name, weights in (state or {}).items():
            self._moving[name].copy_(weights)


class Learner:
    """The model that is trained, its reference, its optimiser, and the processes that share the work.

    ``importance_cap`` truncates the weights of tokens whose sampler isn't this model; 0 if it is.
    """

    def __init__(
        self,
        scorer: TokenScorer,
        optimizer: torch.optim.Optimizer,
        config: MSGRPOConfig,
        processes: Processes,
        *,
        packing: str,
        reference: Reference | None = None,
        surrogate: Surrogate | None = None,
        normalizer: Normalizer | None = None,
        importance_cap: float = 0.0,
    ) -> None:
        self.importance_cap = importance_cap
        self.scorer, self.optimizer, self.config, self.processes = scorer, optimizer, config, processes
        self.reference = reference
        self.work = SharedWork(config, processes, packing, scorer.width, lean=scorer.lean)
        self.surrogate = surrogate or SURROGATES.make("ppo", {}, vars(config))
        self.normalizer = normalizer or NORMALIZERS.make(config.loss_normalizer, shared=vars(config))

    def _score(self, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        return score_with(self.scorer, self.processes.forward, batch)

    def logprobs(self, rows: Sequence[TokenRow], score: Callable[[MicroBatch], Tensor] | None = None) -> list[Tensor]:
        """Return log-probabilities of all rows' responses; by ``score``, or under the model as it is."""
        tell = score or (lambda batch: self._score(batch)[0])
        return [logprobs for (logprobs,) in self.work.scores(rows, lambda batch: (tell(batch),))]

    def logprobs_and_entropies(self, rows: Sequence[TokenRow]) -> list[tuple[Tensor, ...]]:
        return self.work.scores(rows, self._score)

    def update(
        self, rows: Sequence[TokenRow], rng: np.random.Generator, learning_rate: float, batch: Batch | None = None
    ) -> UpdateStats:
        """Take all optimiser steps of one iteration, on at least one row; ``rng`` shuffles alike in every process.

        ``batch`` is what the credit was assigned to, for surrogates that look at it.
        """
        stats = UpdateStats()
        sampled = [None if row.logprobs is None else torch.tensor(row.logprobs, dtype=torch.float64) for row in rows]
        told = [logprobs for logprobs in sampled if logprobs is not None]
        all_told, config = len(told) == len(rows), self.config
        if config.old_logprobs == "sampling" and not all_told:
            raise ValueError("old_logprobs = 'sampling', but the engine returned no log-probabilities: use 'recompute'")
        # stale tokens whose weights are switched off are left to the ratio, which then has to know who sampled them
        fits = all_told and not self.importance_cap and (config.strictly_on_policy or config.staleness > 0)
        from_sampler = fits if config.old_logprobs == "auto" else config.old_logprobs == "sampling"
        old = told if from_sampler else self.logprobs(rows)
        if all_told and not from_sampler:  # the sampler's are compared in the first pass, the others here
            stats.mismatch = mismatch(torch.cat(old), torch.cat(told))
        weights = None
        if self.importance_cap and not from_sampler:
            weights, stats.importance = importance_weights(old, sampled, self.importance_cap)
        ref = self.logprobs(rows, self.reference.score) if self.reference is not None else None
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        batch = Batch([]) if batch is None else batch
        looks_again = "current" in self.surrogate.needs
        known = known_tokens(rows, old, ref, weights)
        if not looks_again:
            known = known._replace(data=self._row_data(rows, range(len(rows)), batch))
        times = [row.step for row in rows] if config.minibatch_order == "time" else None
        for _ in range(config.update_passes):
            for part in minibatches(rows, config.minibatches, rng, times):
                if looks_again:
                    current = self.logprobs([rows[i] for i in part])
                    moved = [now - old[i] for now, i in zip(current, part, strict=True)]
                    known = known._replace(data=self._row_data(rows, part, batch, moved))
                self._step(rows, known, part, stats)
        if self.reference is not None:
            self.reference.follow()
        return stats

    def _row_data(
        self, rows: Sequence[TokenRow], part: Sequence[int], batch: Batch, moved: Sequence[Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Put the surrogate's numbers of some rows in their places among all rows; the others are 0."""
        found: dict[str, Tensor] = {}
        for name, values in self.surrogate.row_data([rows[i] for i in part], batch, moved).items():
            found[name] = torch.zeros(len(rows), dtype=torch.float64)
            found[name][list(part)] = torch.as_tensor(values, dtype=torch.float64)
        return found

    def _step(self, rows: Sequence[TokenRow], known: Tokens, part: Sequence[int], stats: UpdateStats) -> None:
        z, row_weights = self.normalizer.weigh(rows, part)
        weight_of = None if row_weights is None else dict(zip(part, row_weights, strict=True))
        sums = dict[str, float]()
        first_pass = not stats.grad_norms and not stats.mismatch and all(row.logprobs is not None for row in rows)
        differences: list[float] = []

        def part_of_loss(batch: MicroBatch, places: list[int], counts: bool) -> Tensor:
            numbers = [part[place] for place in places]
            logprobs, entropies = self._score(batch)
            tokens = known.of_rows(numbers, logprobs, len(part) / len(rows))
            weights = None if weight_of is None else logprobs.new_tensor([weight_of[i] for i in numbers])
            config = self.config
            result = loss_of(
                tokens, self.surrogate, z, weights=None if weights is None else tokens.spread(weights),
                kl_coefficient=config.kl_coefficient, kl_estimator=config.kl_estimator,
                entropy=entropies, entropy_coefficient=config.entropy_coefficient,
            )  # fmt: skip
            if counts:
                for key, value in result.sums.items():
                    sums[key] = sums.get(key, 0.0) + value
                stats.computed_tokens += batch.computed
                if first_pass:
                    sampled = known.old_logprobs[known.places(numbers)]
                    differences.extend((logprobs.detach() - sampled.to(logprobs.device)).tolist())
            return result.loss

        limits = self.config.max_grad_norm, self.config.abort_grad_norm
        loss, norm = self.work.step([rows[i] for i in part], part_of_loss, self.optimizer, *limits)
        stats.losses.append(loss)
        stats.grad_norms.append(norm)
        everyone = self.processes.gather((sums, differences))
        for their_sums, _ in everyone:
            for key, value in their_sums.items():
                stats.sums[key] = stats.sums.get(key, 0.0) + value
        if first_pass:
            seen = [difference for _, theirs in everyone for difference in theirs]
            stats.mismatch = mismatch(torch.tensor(seen), torch.zeros(len(seen)))


def known_tokens(
    rows: Sequence[TokenRow],
    old: Sequence[Tensor],
    ref: Sequence[Tensor] | None = None,
    importance: Sequence[Tensor] | None = None,
) -> Tokens:
    """Return all tokens of an update as they are before it; the tensors of a row are (K_t,)."""
    advantages = torch.tensor([each for row in rows for each in row.token_advantages()], dtype=torch.float64)
    lengths = torch.tensor([len(row.response) for row in rows])
    before = torch.cat(list(old))
    told, weights = (None if each is None else torch.cat(list(each)) for each in (ref, importance))
    return Tokens(before, before, advantages, lengths, told, importance=weights)


def make_optimizer(model: torch.nn.Module, config: MSGRPOConfig) -> torch.optim.AdamW:
    """Return AdamW over the trainable parameters, with weight decay on matrices only."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.dim() < 2], "weight_decay": 0.0},
    ]
    betas = (config.adam_beta1, config.adam_beta2)
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=config.learning_rate, betas=betas, eps=config.adam_eps,
        fused=True,
    )  # fmt: skip


def learning_rate(config: MSGRPOConfig, iteration: int) -> float:
    """Return the learning rate of an iteration, counted from 0."""
    if iteration < config.warmup:
        return config.learning_rate * (iteration + 1) / config.warmup
    done = (iteration - config.warmup) / max(1, config.iterations - config.warmup)
    if config.schedule == "linear":
        return config.learning_rate * max(0.0, 1 - done)
    if config.schedule == "cosine":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    return config.learning_rate
