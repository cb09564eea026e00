"""The preflight: a few episodes before the first update say whether there is anything to learn from.

A base that doesn't know the form of answers, or groups whose returns are all equal, make every update nothing; a prompt
that grows during an episode can be longer than any first prompt. All of it shows in the first iteration's episodes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from agents.episode import Episode, EpisodeTask
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch, Trajectory
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.filters import spreads
from agents.msgrpo.run.health.advice import against_collapse, another_start
from agents.msgrpo.trajectories import paid_by_the_game, too_long, trajectories_of
from agents.policy import LanguageAgentPolicy

FEW_VALID = 0.5
"""A share of valid answers below which a run may begin, but is told so."""
NEAR_THE_LIMIT = 0.9
"""A longer episode may well have a longer prompt, so nearly reaching the limit is told as well."""


class Preflight(NamedTuple):
    """What the first episodes of a run show.

    Attributes:
        episodes: how many were played.
        answers: the responses in them.
        valid: how many of these were valid.
        groups: groups of episodes from one initial state (per player).
        groups_with_spread: groups whose returns aren't all equal.
        groups_paid_apart: groups whose returns aren't all equal even without the format penalty.
        all_succeeded: whether every episode did.
        longest_prompt: in tokens, over all decisions.
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
        """What these trajectories show, whose invalid steps were charged this penalty."""
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
        """What the episodes show, in one line."""
        return (
            f"before the first update, {self.episodes} episodes: {self.valid / max(1, self.answers):.1%} of "
            f"{self.answers:,} answers valid, returns differ in {self.groups_with_spread} of {self.groups} groups, "
            f"longest prompt {self.longest_prompt} of {config.max_prompt_tokens} tokens"
        )

    def check(self, config: MSGRPOConfig) -> list[str]:
        """What to warn of.

        Raises:
            UnusableModelError: surely fewer valid answers than ``min_valid_share``.
            ConfigError: a prompt longer than ``max_prompt_tokens``.
        """
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
    """Play whole groups of an iteration's tasks, as training does, and say what they show.

    Raises:
        UnusableModelError: as :meth:`Preflight.check`.
        ConfigError: likewise.
    """
    groups = max(1, config.preflight_episodes // config.group_size)
    some = tasks[: groups * config.group_size]
    preflight = Preflight.of(trajectories_of(play(policy, some), some), len(some), config.format_penalty)
    say(preflight.summary(config))
    for warning in preflight.check(config):
        say(f"warning: {warning}")
