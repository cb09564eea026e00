"""HCAPO: how likely a step looks to the model itself once it knows how the episode ended (arXiv 2603.08754).

The model scores its own responses again, with the end of the episode told in the prompt. A step that is likelier in
hindsight than the episode's others gets more of the return: ::

    p_it   = exp(mean_k log pi(y_itk | prompt with the end) / temperature)
    rho_it = clip(p_it / mean_t p_it, 0.8, 1.2)
    Q_it   = rho_it gamma^(T_i - 1 - t) R_i,   then smoothing Q_it + (1 - smoothing) Q_i,t+1
    A_it   = z_g(R_i) + w z(Q_it) over the group's steps, the second part not below 0 in a success

(equations 6 to 8, section 4.3 and appendix A), with temperature 5, gamma 0.95 and w 1. Smoothing is the paper's option:
1 leaves it out, the paper's value is 0.5.

Our reading: what is told is the last observation, before the observation of the step, in words of ours; and z takes all
steps of the group, as the paper's algorithm and theory do, though the text beside equation 8 says those of one time.
The model has to be in this process; its pass over all responses isn't counted as tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import request_in, response_logprobs
from agents.msgrpo import ConfigError, Shared, configured
from agents.msgrpo.credit import (
    Batch,
    Credit,
    Floats,
    local_policy,
    split_like,
    standardised,
    task_of,
    within_groups,
    within_steps,
)
from textgames import TSMG

TOLD = "The episode will end like this:\n{end}\n\nNow:\n{now}"


@configured
class HCAPO:
    """The episode's return among its group, plus what of it each step deserves as the model sees it in hindsight."""

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the hindsight's part; 0 leaves the episode's alone."""
    temperature: float = Field(5.0, gt=0)
    """Divides the mean log-probability of a response."""
    least: float = Field(0.8, ge=0)
    """The least ratio of a step's probability in hindsight to the episode's mean."""
    most: float = Field(1.2, gt=0)
    """The largest such ratio."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount of the return per step before the last."""
    smoothing: float = Field(1.0, gt=0, le=1)
    """The share of a step's own value, the rest being the next step's; 1 smooths nothing."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True
    shared: ClassVar[Shared] = {"discount": "discount"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return self.by_scores(batch, hindsight(batch))

    def by_scores(self, batch: Batch, scores: Sequence[Floats]) -> Credit:
        """Credit by (T_i,) mean log-probabilities of the responses in hindsight."""
        values = [self._values(score, each.returned()) for score, each in zip(scores, batch.trajectories, strict=True)]
        whole = within_groups(batch, batch.returns(), standardised)
        steps = within_steps(batch, "group", values, standardised)
        kept = [
            np.maximum(step, 0.0) if each.success else step
            for step, each in zip(steps, batch.trajectories, strict=True)
        ]
        return Credit.of([e + self.step_weight * s for e, s in zip(whole, kept, strict=True)])

    def _values(self, score: Floats, returned: float) -> Floats:
        """Return (T,) Q of one episode's steps."""
        likely = np.exp(score / self.temperature)
        ratio = np.clip(likely / likely.mean(), self.least, self.most)
        values: Floats = ratio * self.discount ** np.arange(len(score) - 1, -1, -1) * returned
        return self.smoothing * values + (1 - self.smoothing) * np.append(values[1:], values[-1:])


def hindsight(batch: Batch) -> list[Floats]:
    """Return (T_i,) the mean log-probability of each response's tokens with the end of its episode told in the prompt.

    Raises:
        ConfigError: the policy has no model in this process, or reads earlier turns.
    """
    policy = local_policy(batch)
    if policy is None:
        raise ConfigError(
            "credit = 'hcapo' scores responses under other prompts: it takes a model in this process (engine = 'live') "
            "whose prompts show no earlier turns (history_turns = 0)"
        )
    games: dict[str, TSMG[Any]] = {}
    prompts, responses = [], []
    for each in batch.trajectories:
        task = task_of(each)
        game = games.setdefault(task.scenario, textgames.parallel_env(task.env_id, **task.kwargs).game)
        end = game.observe(each.end_state, each.player)
        for state, left, response in zip(each.states, each.steps_left, each.response_ids, strict=True):
            request = request_in(game, state, each.player, left)
            told = replace(request, observation=TOLD.format(end=end, now=request.observation))
            prompts.append(policy.prompt_map(told))
            responses.append(response)
    sums = np.array(response_logprobs(policy, prompts, responses))
    lengths = np.array([max(1, len(response)) for response in responses])
    return split_like(sums / lengths, batch.trajectories)
