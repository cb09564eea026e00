"""Batches of episodes as an iteration of training plays them, from the same starts every time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from agents import Episode, EpisodeTask, Policy, rollout
from agents.analysis import has_local_model
from agents.msgrpo import (
    ConfigError,
    MSGRPOConfig,
    Rollouts,
    Segmenter,
    TokenRow,
    completed,
    needed_segmenter,
    trajectories_of,
)
from agents.msgrpo.credit import Batch, CreditMethod
from research.credit.instrument.exact.truth import Truth
from research.credit.instrument.scores import ScoreModel, why_no_gradient
from textgames import TRAINING_SEEDS, TSMG, InvalidAction, Scenario, layout_generator

CONCURRENCY = 256  # episodes that a model sees together


@dataclass(frozen=True)
class Setting:
    """A game, its starts and the rules by which episodes of it are played."""

    scenario: Scenario  # the game
    groups: int = 8  # starts; the layouts of training seeds
    group_size: int = 16  # episodes from each start in a batch
    max_steps: int | None = None  # rounds after which an episode is cut off; ``None``: the scenario's own
    format_penalty: float = 1.0  # what an invalid response costs
    invalid_action: InvalidAction = "default"  # what an invalid response does
    seed: int = 0  # of everything random

    def __post_init__(self) -> None:
        if self.groups < 1 or self.group_size < 2:
            raise ValueError(
                f"credit is measured on at least 1 group of at least 2 episodes, got {self.groups} of {self.group_size}"
            )
        if self.groups > len(TRAINING_SEEDS):
            raise ValueError(f"there are {len(TRAINING_SEEDS):,} training layouts, so no {self.groups:,} groups")

    @property
    def rounds(self) -> int:
        return self.scenario.horizon if self.max_steps is None else self.max_steps

    def game(self) -> TSMG[Any]:
        return self.scenario.game()

    def layouts(self, batch: int | None = None) -> list[int]:
        """Return the seeds of the starts: the same for all batches, or those of one batch as training draws them."""
        entropy = (self.seed,) if batch is None else (self.seed, batch)
        drawn = np.random.default_rng(entropy).choice(len(TRAINING_SEEDS), self.groups, replace=False)
        return [TRAINING_SEEDS[index] for index in drawn.tolist()]

    def starts(self) -> list[Any]:
        game, unused = self.game(), np.random.default_rng(0)
        return [game.initial_state(layout_generator(layout, unused)) for layout in self.layouts()]

    def truth(self, policy: Policy, **how: Any) -> Truth:
        """Return the true values of a policy from the starts; ``how`` and errors are those of :meth:`Truth.of`."""
        rules: dict[str, Any] = {"format_penalty": self.format_penalty, "invalid_action": self.invalid_action}
        return Truth.of(policy, self.game(), self.starts(), self.rounds, **rules, seed=self.seed, **how)

    def tasks(self, batch: int, layouts: Sequence[int]) -> list[EpisodeTask]:
        kwargs: dict[str, Any] = {"format_penalty": self.format_penalty, "invalid_action": self.invalid_action}
        seeds = np.random.default_rng((self.seed, batch, 1)).choice(2**31, self.groups * self.group_size, replace=False)
        kwargs |= {"noise": (self.seed, batch), "max_steps": self.rounds}
        return [
            EpisodeTask.of(self.scenario, int(seed), layout_seed=layouts[index // self.group_size], **kwargs)
            for index, seed in enumerate(seeds)
        ]

    @property
    def config(self) -> MSGRPOConfig:
        """The settings of training that methods share: the defaults but for what is played."""
        return MSGRPOConfig(groups=self.groups, group_size=self.group_size, seed=self.seed, max_steps=self.rounds)


def play(policy: Policy, setting: Setting, batch: int, *, fresh_starts: bool = False) -> Batch:
    """Play one batch, whose randomness follows from its number and the setting's seed.

    With ``fresh_starts`` it has layouts of its own, as every iteration of training has. Raises RolloutError.
    """
    layouts = setting.layouts(batch if fresh_starts else None)
    rollouts = Rollouts(setting.config, [setting.scenario], batch, policy, _played)  # type: ignore[arg-type]
    tasks = setting.tasks(batch, layouts)
    return Batch(trajectories_of(_played(policy, tasks), tasks), rollouts, batch)


def _played(policy: Policy, tasks: Sequence[EpisodeTask]) -> list[Episode]:
    by_seed = {episode.seed: episode for episode in rollout(policy, tasks, max_concurrency=CONCURRENCY)}
    return [by_seed[task.seed] for task in tasks]


def why_not_met(method: CreditMethod, policy: Policy, truth: Truth | None) -> str | None:
    """Return why a method can't have what it needs here; ``None`` if it can."""
    if method.needs & {"old_logprobs", "entropies"} and (reason := why_no_gradient(policy)) is not None:
        return reason
    if "values" in method.needs and truth is None:
        return "it needs a critic's values, and without true values there are none"
    if "reward_model" in method.needs:
        return "it learns a reward model beside the policy, and here nothing is trained"
    if "values" in method.needs and "token" in method.heads.values() and not has_local_model(policy):
        return "it needs values token by token, and the policy has no model in this process"
    if "segments" in method.needs and not has_local_model(policy):
        return "it needs the parts of responses by their tokens, and the policy has no model in this process"
    try:
        _segmenter(method, policy)
    except ConfigError as error:
        return str(error)
    return None


def _segmenter(method: CreditMethod, policy: Any) -> Segmenter | None:
    needed = "segments" in method.needs
    return needed_segmenter(method, policy.prompt_map, policy.model.tokenizer) if needed else None


def with_needs(
    batch: Batch, method: CreditMethod, policy: Policy, model: ScoreModel | None, truth: Truth | None
) -> Batch:
    """Return the batch with what a method needs beyond what every rollout tells.

    There is no critic: values are the best that one could say who reads the prompt alone, for every head and at every
    token. So a method is measured as if its critic were learnt perfectly.
    """

    def scores(rows: Sequence[TokenRow]) -> list[tuple[Tensor, Tensor]]:
        assert model is not None
        different = list(dict.fromkeys(rows))  # batches from the same starts have many equal rows
        found = dict(zip(different, model.logprobs_and_entropies(different), strict=True))
        return [found[row] for row in rows]

    needs, segmenter = method.needs if model is not None else (), _segmenter(method, policy)
    trajectories = completed(batch.trajectories, needs, scores, segmenter=segmenter)
    if truth is not None and "values" in method.needs:
        for number, each in enumerate(trajectories):
            values = truth.prompt_values(each)
            pairs = zip(each.response_ids, values.tolist(), strict=True)
            by_token = [np.full(len(ids), value) for ids, value in pairs]
            told = {name: by_token if kind == "token" else values for name, kind in method.heads.items()}
            trajectories[number] = replace(each, values=values, head_values=told)
    return Batch(trajectories, batch.rollouts, batch.iteration)
