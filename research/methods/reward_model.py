"""An implicit reward model: a language model whose log-ratio to the policy is a reward of each step.

It begins as the policy and learns which of two episodes was better, by the DPO loss of whole trajectories (iStar, arXiv
2509.19199, and the public code of its authors): ::

    q_it = sum_k log pi_phi(y_itk) - log pi(y_itk)
    loss = mean over pairs of -log sigma(beta (mean_t q_better,t - mean_t q_worse,t))

The policy is scored as the reward model is, in the same batches: while the two are equal, every ratio is exactly 0,
whatever the sampler's arithmetic is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from agents.msgrpo import Beside, MSGRPOConfig
from agents.msgrpo.credit import Floats, Preferences, Trajectory
from agents.msgrpo.learner import MicroBatch, Processes, TokenScorer, copy_of_trained, score_with

_HEADS = {"reward": "response"}


class RewardModel(Beside):
    """Scores responses beside the policy, and learns from preferences, by one optimiser step of a pass.

    Weights that the policy trains are copied, frozen ones are shared: with an adapter the reward model is a second one.
    ``rate`` is its learning rate as a multiple of the policy's; ``critic_passes``, ``critic_warmup`` and
    ``critic_max_grad_norm`` are its settings, too. Weights that are sharded over processes are a ConfigError.
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
        """Return the trajectories with ``log_ratios``."""
        rows = [row for each in trajectories for row in each.rows]

        def ratios_of(batch: MicroBatch) -> Sequence[Tensor]:
            policy = score_with(self._policy, self._policy_processes.forward, batch)[0]
            return (self._logprobs(batch) - policy,)

        told = iter([float(ratios.sum()) for (ratios,) in self.work.scores(rows, ratios_of)] if rows else [])
        return [replace(each, log_ratios=np.array(list(islice(told, len(each))))) for each in trajectories]

    def learn(self, lessons: Iterable[tuple[Sequence[Trajectory], Any]], rng: np.random.Generator) -> dict[str, float]:
        """Learn from :class:`Preferences`, by the ratios as they were told; a second pass takes them anew."""
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
        """Take a step, given the loss's derivative by each episode's mean log-ratio; return the gradient's norm."""
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
    """Return the loss of (N,) values of trajectories, and its (N,) derivatives."""
    pulls = np.zeros_like(values)
    loss, share = 0.0, 1 / len(preferences.pairs)
    for better, worse in preferences.pairs:
        ahead = values[better] - values[worse]
        loss += share * float(np.logaddexp(0.0, -ahead))
        pull = share / (1 + np.exp(ahead))
        pulls[better] -= pull
        pulls[worse] += pull
    return loss, pulls
