"""What learns beside the policy: a model with an optimiser of its own, and the processes that share its work.

:class:`RewardModel` is an implicit one: a language model whose log-ratio to the policy is a reward of each step. It
begins as the policy and learns which of two episodes was better, by the DPO loss of whole trajectories (iStar, arXiv
2509.19199, and the public code of its authors): ::

    q_it = sum_k log pi_phi(y_itk) - log pi(y_itk)
    loss = mean over pairs of -log sigma(beta (mean_t q_better,t - mean_t q_worse,t))

The policy is scored as the reward model is, in the same batches: while the two are equal, every ratio is exactly 0,
whatever the sampler's arithmetic is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Floats, Preferences, TokenRow, Trajectory
from agents.msgrpo.errors import ConfigError, DivergenceError, TrainingDivergedError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import copy_of_trained
from agents.msgrpo.learner.scoring.packing import MicroBatch, SharedWork
from agents.msgrpo.learner.scoring.scorer import TokenScorer, score_with
from agents.msgrpo.learner.update import make_optimizer

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

    def step(self, rows: Sequence[TokenRow], loss_of: Callable[[MicroBatch, list[int]], Tensor]) -> tuple[float, float]:
        """Take one optimiser step; see :meth:`SharedWork.step`."""
        parameters = [each for each in self.model.parameters() if each.requires_grad]
        limit = self.config.critic_max_grad_norm
        try:
            return self.work.step(rows, lambda *part: loss_of(*part[:2]), self.optimizer, parameters, limit)
        except DivergenceError as error:
            raise TrainingDivergedError(
                f"the {self.called}: {error}; its step was not applied. "
                f"Lower {self.rate_setting} (now {getattr(self.config, self.rate_setting):g})",
                self.rate_setting,
            ) from error

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


_HEADS = {"reward": "response"}


class RewardModel(Beside):
    """Scores responses beside the policy, and learns from preferences, by one optimiser step of a pass.

    Weights that the policy trains are copied, frozen ones are shared: with an adapter the reward model is a second one.
    Of the ``[critic]`` settings ``critic_passes``, ``critic_warmup`` and ``critic_max_grad_norm`` are its own, too.

    Args:
        scorer: of the policy, as it begins.
        config: the run's.
        processes: the trainer's.
        packing: the policy's.
        rate: its learning rate, as a multiple of the policy's.

    Raises:
        ConfigError: the weights are sharded over processes.
    """

    called, rate_setting = "reward model", "learning_rate"
    model: TokenScorer

    def __init__(
        self, scorer: TokenScorer, config: MSGRPOConfig, processes: Processes, *, packing: str, rate: float
    ) -> None:
        self.check_not_sharded(config, processes)
        own = copy_of_trained(scorer)
        rate *= config.learning_rate
        super().__init__(own, _HEADS, config, processes, packing=packing, width=own.width, rate=rate, lean=own.lean)
        self._policy, self._policy_processes = scorer, processes

    def complete(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories with ``log_ratios``."""
        rows = [row for each in trajectories for row in each.rows]

        def ratios_of(batch: MicroBatch) -> Sequence[Tensor]:
            policy = score_with(self._policy, self._policy_processes.forward, batch)[0]
            return (self._logprobs(batch) - policy,)

        told = iter([float(ratios.sum()) for (ratios,) in self.work.scores(rows, ratios_of)] if rows else [])
        return [replace(each, log_ratios=np.array(list(islice(told, len(each))))) for each in trajectories]

    def learn(self, lessons: Iterable[Lesson], rng: np.random.Generator) -> dict[str, float]:
        """See :meth:`Beside.learn`; a lesson is :class:`Preferences`, and without pairs there is nothing to learn.

        Values are those of the policy as it was when they were told; of a second pass, as it is after its update.
        """
        losses, norms, right = [], [], []
        for trajectories, preferences in lessons:
            known: Any = trajectories  # all of them have log_ratios
            for number in range(self.config.critic_passes if preferences and preferences.pairs else 0):
                known = self.complete(trajectories) if number else known
                values = np.array([preferences.beta * float(each.log_ratios.mean()) for each in known])
                loss, pulls = preference_loss(values, preferences)
                right.append(np.mean([values[i] > values[j] for i, j in preferences.pairs]))
                losses.append(loss)
                norms.append(self._follow(trajectories, preferences.beta * pulls))
        metrics = {"critic_loss": float(np.mean(losses)) if losses else 0.0}
        metrics["critic_grad_norm"] = float(np.mean(norms)) if norms else 0.0
        return metrics | ({"preferences_right": float(right[0])} if right else {})

    def _follow(self, trajectories: Sequence[Trajectory], pulls: Floats) -> float:
        """One step down the loss, whose derivative by each episode's mean log-ratio is given; the gradient's norm."""
        pairs = zip(trajectories, pulls.tolist(), strict=True)
        rows = [(row, pull / len(each)) for each, pull in pairs if pull for row in each.rows]

        def loss_of(batch: MicroBatch, numbers: list[int]) -> Tensor:
            logprobs = self._logprobs(batch)
            weights = [rows[n][1] for n in numbers for _ in rows[n][0].response]
            return (logprobs * logprobs.new_tensor(weights)).sum()

        return self.step([row for row, _ in rows], loss_of)[1]

    def _logprobs(self, batch: MicroBatch) -> Tensor:
        return score_with(self.model, self.processes.forward, batch)[0]


def preference_loss(values: Floats, preferences: Preferences) -> tuple[float, Floats]:
    """The loss of (N,) values of trajectories, and its (N,) derivatives."""
    pulls = np.zeros_like(values)
    loss, share = 0.0, 1 / len(preferences.pairs)
    for better, worse in preferences.pairs:
        ahead = values[better] - values[worse]
        loss += share * float(np.logaddexp(0.0, -ahead))
        pull = share / (1 + np.exp(ahead))
        pulls[better] -= pull
        pulls[worse] += pull
    return loss, pulls
