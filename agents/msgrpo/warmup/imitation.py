"""Imitation on the learner's own trees: next-token cross entropy on the responses of decisions that a teacher took.

Every setting is one that the trainer has too: ``update_passes`` is the number of passes through the decisions, each in
``minibatches`` optimiser steps, and ``learning_rate``, ``schedule`` and ``warmup`` count those.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.common.files import replacing
from agents.common.interrupt import uninterrupted
from agents.common.progress import Progress
from agents.common.tensors import load_tensors
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import ConfigError, DivergenceError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import autocast_dtype, prepare_model
from agents.msgrpo.learner.scoring.packing import MicroBatch, SharedWork
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import learning_rate, make_optimizer, minibatches
from agents.turn import Prompt, prefix_of

_CHECKPOINT_SECONDS = 120.0
"""The time that a kill loses at most."""


class TaughtDecision(NamedTuple):
    """One decision of a teacher: the whole ``response`` to a prompt of the model's, and the factor of its loss.

    A last message of the assistant's in the prompt is the beginning of the response.
    """

    prompt: Prompt
    response: str
    weight: float = 1.0


class Imitation(NamedTuple):
    """The result of an imitation: the trained ``model``, or its wrapper with the adapter.

    Losses are in nats per response token: of every optimiser step, and on decisions that it never learnt from, before
    and after; NaN without such. Tokens are a decision and pass: those computed with a gradient, padding included, and
    those that a row has alone.
    """

    model: Any
    losses: tuple[float, ...]
    held_out_before: float
    held_out: float
    tokens_computed: float
    tokens_alone: float
    seconds: float
    cpu_seconds: float


def imitate(
    model: Any,
    tokenizer: Any,
    decisions: Sequence[TaughtDecision],
    config: MSGRPOConfig,
    *,
    held_out: Sequence[TaughtDecision] = (),
    mixed: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    checkpoint: Path | None = None,
) -> Imitation:
    """Train a model in place to answer as the decisions do. Deterministic on one machine, interrupted or not.

    ``mixed``: the teacher answers a prompt by chance, so decisions with equal prompts are learnt in the same step.
    ``checkpoint`` is a file that keeps the state every two minutes, on Ctrl-C and at the end, so that the same call
    continues after a stop. Remove it when the model is saved.
    """
    if not decisions:
        raise ValueError("there are no decisions to imitate")
    together: dict[Any, list[int]] = {}  # the decisions that no step parts
    for index, decision in enumerate(decisions):
        together.setdefault(decision.prompt if mixed else index, []).append(index)
    steps = min(config.minibatches, len(together))
    config = replace(config, iterations=config.update_passes * steps, temperature=1.0)
    imitator = _Imitator(prepare_model(model, tokenizer, config), tokenizer, config, checkpoint)
    rows, kept_out = imitator.rows(decisions), imitator.rows(held_out)
    imitator.made_by = hashlib.sha256(repr((replace(config, out=""), rows, mixed)).encode()).hexdigest()
    imitator.restore()
    if not imitator.losses:
        imitator.held_out_before = imitator.loss(kept_out)
    imitator.run(rows, [*together.values()], on_progress)
    return Imitation(
        imitator.model.eval(),
        tuple(imitator.losses),
        imitator.held_out_before,
        imitator.loss(kept_out),
        imitator.tokens / (config.update_passes * len(rows)),
        float(np.mean([len(row.prompt) + len(row.response) - 1 for row in rows])),
        imitator.seconds,
        imitator.cpu_seconds,
    )


_KEPT = ("made_by", "losses", "held_out_before", "tokens", "seconds", "cpu_seconds")


class _Imitator:
    def __init__(self, model: Any, tokenizer: Any, config: MSGRPOConfig, checkpoint: Path | None) -> None:
        self.model, self.tokenizer, self.config, self.checkpoint = model, tokenizer, config, checkpoint
        self.reader = TransformersModel(model, tokenizer)
        chunk, autocast = config.logprob_chunk_tokens, autocast_dtype(config)
        self.scorer = TokenScorer(model, temperature=1.0, chunk=chunk, autocast=autocast)
        longest = config.max_prompt_tokens + config.max_response_tokens
        packing = choose_ways(self.scorer, config.packing, longest=longest)
        processes = Processes()
        self.optimizer = processes.prepare(self.scorer, make_optimizer(model, config))
        self.shared = SharedWork(config, processes, packing, self.scorer.width, lean=self.scorer.lean)
        self.parameters = [each for each in self.scorer.parameters() if each.requires_grad]
        self.losses: list[float] = []
        self.sound, self.made_by, self.held_out_before = True, "", float("nan")
        self.tokens, self.seconds, self.cpu_seconds = 0, 0.0, 0.0

    def rows(self, decisions: Sequence[TaughtDecision]) -> list[TokenRow]:
        end = [] if self.tokenizer.eos_token_id is None else [self.tokenizer.eos_token_id]
        prompts = self.reader.encode([decision.prompt for decision in decisions])
        rows = []
        for prompt, decision in zip(prompts, decisions, strict=True):
            said = decision.response.removeprefix(prefix_of(decision.prompt))
            response = self.tokenizer(said, add_special_tokens=False)["input_ids"]
            if len(prompt) > self.config.max_prompt_tokens or len(response) > self.config.max_response_tokens:
                raise ConfigError(
                    f"a decision has {len(prompt)} tokens of prompt and {len(response)} of response, more than "
                    f"max_prompt_tokens = {self.config.max_prompt_tokens} and max_response_tokens = "
                    f"{self.config.max_response_tokens}: raise them"
                )
            rows.append(TokenRow(tuple(prompt), (*response, *end), scale=decision.weight))
        return rows

    def loss(self, rows: Sequence[TokenRow]) -> float:
        if not rows:
            return float("nan")
        return -float(torch.cat([logprobs for logprobs, _ in self.shared.scores(rows, self.scorer.score)]).mean())

    def run(
        self, rows: Sequence[TokenRow], together: Sequence[list[int]], on_progress: Callable[[Progress], None]
    ) -> None:
        config, kept = self.config, time.perf_counter()
        parts = [
            [rows[index] for each in part for index in together[each]]
            for number in range(config.update_passes)
            for part in minibatches(together, config.minibatches, np.random.default_rng([config.seed, number]))
        ]
        try:
            for number, part in enumerate(parts[len(self.losses) :], len(self.losses)):
                started, cpu = time.perf_counter(), time.process_time()
                with uninterrupted():
                    self._step(part, learning_rate(config, number))
                    self.seconds += time.perf_counter() - started
                    self.cpu_seconds += time.process_time() - cpu
                on_progress(Progress(len(self.losses), config.iterations, self.losses[-1], self.seconds))
                if time.perf_counter() - kept > _CHECKPOINT_SECONDS:
                    self._keep()
                    kept = time.perf_counter()
        finally:
            if self.sound:
                self._keep()

    def _step(self, rows: Sequence[TokenRow], rate: float) -> None:
        count = sum(len(row.response) for row in rows)

        def part_of_loss(batch: MicroBatch, numbers: list[int], counts: bool) -> Tensor:
            logprobs, _ = self.scorer.score(batch)
            each = [rows[number].scale for number in numbers for _ in rows[number].response]  # (n,), as these
            self.tokens += batch.computed
            return -(logprobs * logprobs.new_tensor(each)).sum() / count

        for group in self.optimizer.param_groups:
            group["lr"] = rate
        try:
            loss, _ = self.shared.step(rows, part_of_loss, self.optimizer, self.config.max_grad_norm)
        except DivergenceError as error:
            self.sound = False
            raise DivergenceError(f"{error}: lower learning_rate") from error
        self.losses.append(loss)

    def _keep(self) -> None:
        if self.checkpoint is None:
            return
        state = {name: getattr(self, name) for name in _KEPT} | {
            "optimizer": self.optimizer.state_dict(),
            "parameters": [each.detach() for each in self.parameters],
        }
        with uninterrupted(), replacing(self.checkpoint, "wb") as stream:
            torch.save(state, stream)

    def restore(self) -> None:
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        try:
            state = load_tensors(self.checkpoint)
            made_by = state["made_by"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self.checkpoint} is no checkpoint of an imitation ({error}); delete it") from error
        if made_by != self.made_by:
            raise ConfigError(
                f"{self.checkpoint} was left by an imitation with other settings or decisions: delete it to begin "
                "anew, or take another folder"
            )
        for name in _KEPT:
            setattr(self, name, state[name])
        self.optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for parameter, saved in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(saved)
