"""Credit of a known quality: the true advantage, mixed with something that is no credit, in a known dose.

``A = share T + sqrt(1 - share^2) N`` with T the true advantage ``A^pi(s, a)`` of the policy that plays, and N what
spoils it; both have mean square 1 over the steps of the batch. So ``share`` is the correlation with the truth, and
neither the size of the credit nor that of the update differs between doses.
"""

from typing import ClassVar, Literal
from zlib import crc32

import numpy as np
from pydantic import Field

import textgames
from agents.msgrpo import ConfigError, configured, local_policy, task_of
from agents.msgrpo.credit import Batch, Credit, Floats
from research.credit.instrument.exact.truth import Truth


@configured
class Dosed:
    """The true advantage in a known dose."""

    share: float = Field(1.0, ge=0, le=1)
    """The correlation with the true advantage that the credit has."""
    noise: Literal["step", "episode", "action"] = "step"
    """What the rest is."""
    seed: int = 0
    """Seed of the numbers of actions; the run's if it isn't given."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    shared: ClassVar[dict[str, str]] = {"seed": "seed"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        noise: list[Floats] = []
        for each in batch.trajectories:
            if self.noise == "episode":
                noise.append(np.full(len(each), rng.standard_normal()))
            elif self.noise == "step":
                noise.append(rng.standard_normal(len(each)))
            else:
                seeds = [[self.seed, crc32(action.encode())] for action in each.actions]
                noise.append(np.array([np.random.default_rng(seed).standard_normal() for seed in seeds]))
        true, noise, rest = _unit(true_advantages(batch)), _unit(noise), (1 - self.share**2) ** 0.5
        mixed = [self.share * t + rest * n for t, n in zip(true, noise, strict=True)]
        a, b = np.concatenate(mixed), np.concatenate(true)
        size = float(np.sqrt((a @ a) * (b @ b)))
        # without taking means away, as an advantage of 0 means something
        return Credit.of(mixed, metrics={"true_share": float(a @ b) / size if size > 0 else 0.0})


def true_advantages(batch: Batch) -> list[Floats]:
    """Return (T_i,) ``A^pi(s, a)`` of every step under the policy that played the batch, all of one game.

    Raises:
        ConfigError: there is no model in this process, whose probabilities are known.
        ValueError: the game is too large, or doesn't tell its outcomes.
    """
    policy = local_policy(batch)
    if policy is None:
        raise ConfigError("true advantages take a model in this process (engine = 'live')")
    first = [batch.trajectories[members[0]] for members in batch.groups.values()]
    task = task_of(first[0])
    env = textgames.parallel_env(task.env_id, **task.kwargs)
    truth = Truth.of(
        policy,
        env.game,
        [each.states[0] for each in first],
        first[0].steps_left[0] or 0,
        format_penalty=env.rules.format_penalty,
        invalid_action=env.rules.invalid_action,
    )
    return [truth.advantages(each) for each in batch.trajectories]


def _unit(parts: list[Floats]) -> list[Floats]:
    """Return the same with mean square 1 over all steps; zeros stay."""
    size = float(np.sqrt(np.mean(np.concatenate(parts) ** 2)))
    return [part / size for part in parts] if size > 0 else parts
