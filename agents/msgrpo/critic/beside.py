"""What learns beside the policy: a model with an optimiser of its own, and the processes that share its work."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Trajectory
from agents.msgrpo.errors import ConfigError, TrainingDivergedError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.packing import MicroBatch, SharedWork
from agents.msgrpo.learner.update import make_optimizer
from agents.msgrpo.rows import TokenRow

Lesson = tuple[Sequence[Trajectory], Any]
"""Trajectories, and what the model is to learn from them."""


class Beside:
    """A model that is made of the policy as it begins, tells something of trajectories, and learns after the policy.

    Args:
        model: the module that is trained, made after :meth:`check_not_sharded`.
        heads: what it tells, by name, by which a checkpoint knows it.
        config: its ``[critic]`` settings, and how rows are packed.
        processes: the trainer's.
        packing: that the policy takes, as the model's backbone is the same.
        width: of its hidden states.
        rate: its learning rate, which is constant.
        lean: see :class:`SharedWork`.
    """

    called: ClassVar[str] = "critic"
    rate_setting: ClassVar[str] = "critic_learning_rate"

    def __init__(
        self,
        model: nn.Module,
        heads: Mapping[str, str],
        config: MSGRPOConfig,
        processes: Processes,
        *,
        packing: str,
        width: int,
        rate: float,
        lean: bool = False,
    ) -> None:
        self.model, self.heads, self.config = model, heads, config
        self.processes = processes.another()
        own = replace(config, learning_rate=rate)
        self.optimizer = self.processes.prepare(model, make_optimizer(model, own))
        self.work = SharedWork(config, self.processes, packing, width, lean=lean)

    @classmethod
    def check_not_sharded(cls, config: MSGRPOConfig, processes: Processes) -> None:
        """Refuse weights that no process has all of.

        Raises:
            ConfigError: they are sharded.
        """
        if processes.sharded:
            raise ConfigError(
                f"credit = {config.credit!r} with task_sampling = {config.task_sampling!r} needs a {cls.called}, which "
                "can't be sharded over processes (FSDP): train data-parallel or in one process, or choose methods that "
                "need none"
            )

    def alone(self, iteration: int) -> bool:
        """Whether only this model learns in this iteration, counted from 0."""
        return iteration < self.config.critic_warmup

    def complete(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories with what the model tells of them."""
        raise NotImplementedError

    def learn(self, lessons: Iterable[Lesson], rng: np.random.Generator) -> dict[str, float]:
        """All optimiser steps of one iteration, and what to log of them; ``rng`` shuffles alike in every process.

        Raises:
            TrainingDivergedError: a loss or gradient that is not finite. The step was not applied.
        """
        raise NotImplementedError

    def step(
        self,
        rows: Sequence[TokenRow],
        loss_of: Callable[[MicroBatch, list[int]], Tensor],
        value: float | None = None,
    ) -> tuple[float, float]:
        """Take one optimiser step; returns its loss and gradient norm.

        ``loss_of(micro-batch, numbers of its rows)`` is that micro-batch's part of a sum. ``value`` is the loss where
        that sum only has its gradient.
        """
        self.optimizer.zero_grad(set_to_none=True)
        mine, work = 0.0, self.work.mine(rows)
        for done, (batch, numbers, counted) in enumerate(work, 1):
            with self.processes.synchronise(last=done == len(work)):
                loss = loss_of(batch, numbers)
                self.processes.backward(loss * float(counted))
            mine += loss.item() if counted else 0.0
        total = sum(self.processes.gather(mine)) if value is None else value
        limit = self.config.critic_max_grad_norm or math.inf
        norm = self.processes.clip_grad_norm([p for p in self.model.parameters() if p.requires_grad], limit)
        if not math.isfinite(total) or not math.isfinite(norm):
            raise TrainingDivergedError(
                f"the {self.called}'s loss is {total:g} and its gradient norm {norm:g}; its step was not applied. "
                f"Lower {self.rate_setting} (now {getattr(self.config, self.rate_setting):g})",
                self.rate_setting,
            )
        self.optimizer.step()
        return total, norm

    def state_dict(self) -> dict[str, Any]:
        """Heads, weights and optimiser, for checkpoints."""
        weights = {name: each.cpu().clone() for name, each in own_weights(self.model).items()}
        optimizer = self.processes.optimizer_state(self.optimizer)
        return {"heads": dict(self.heads), "weights": weights, "optimizer": optimizer}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Take up what :meth:`state_dict` told.

        Raises:
            ConfigError: there is none, or one of other heads or another model.
        """
        if state is None:
            raise ConfigError(
                f"the checkpoint holds no {self.called}, which credit = {self.config.credit!r} needs: resume it with "
                "the method that it was trained with, or begin a new run from its model"
            )
        # heads of other values can have the same shapes
        if list(state["heads"].items()) != list(self.heads.items()):
            raise ConfigError(
                f"credit = {self.config.credit!r} with task_sampling = {self.config.task_sampling!r} needs a "
                f"{self.called} with the heads {dict(self.heads)!r}, but the checkpoint's {self.called} is of "
                f"another model or method, with the heads {state['heads']!r}: resume it with the method that it was "
                "trained with, or begin a new run from its model"
            )
        try:
            load_own_weights(self.model, state["weights"])
            self.processes.load_optimizer_state(self.optimizer, state["optimizer"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise ConfigError(f"the checkpoint's {self.called} is of another model or method: {error}") from None


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights that are trained, by name; the frozen ones are shared with the policy."""
    return {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}


@torch.no_grad()
def load_own_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Take up :func:`own_weights`.

    Raises:
        KeyError, RuntimeError: those of another model.
    """
    for name, each in own_weights(model).items():
        each.copy_(weights[name])
