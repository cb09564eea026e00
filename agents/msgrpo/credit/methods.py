"""Methods of credit from what was paid: by comparison within a group, GiGPO, DAPO, and PPO by turn.

MS-GRPO gives every step the whole episode's return, normalised within its group: ``A_i = (R_i - mean_g R) / (std_g R +
eps)`` for all steps of episode i (arXiv 2508.10839, section 4). Four choices make it, and other ones make other
methods: which values are compared (``among``), what is taken off them (``baseline``), what divides the difference
(``scale``), and whether all steps of an episode get what its return is worth or each what its own return-to-go is
(``spread``). Published choices are lines of :data:`agents.msgrpo.credit.METHODS`.
"""

from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo.credit.arithmetic import (
    SETS,
    Baseline,
    Scale,
    compared,
    group_advantages,
    labels_of_steps,
    split_like,
    standardised,
    whitened,
    within_groups,
    within_steps,
)
from agents.msgrpo.credit.batch import Batch, Credit, Floats, Heads, returns_to_go
from agents.msgrpo.plugins import Shared, configured


@configured
class ByReturn:
    """A method that needs nothing but what was paid, discounted as the run says."""

    discount: float = Field(1.0, gt=0, le=1)
    """Discount per step in a return."""

    needs: ClassVar[frozenset[str]] = frozenset()
    shared: ClassVar[Shared] = {"discount": "discount"}


@configured
class Compared(ByReturn):
    """Worth of an episode, or a step, beside the others of its set."""

    among: Literal["group", "time", "state", "state_and_steps_left"] = "group"
    """The set, always within a group: all of it, its steps at the same time, in the same state, or in the same state
    with as many rounds left. An episode stands where its first step does."""
    baseline: Baseline = "mean"
    """Subtracted from a value: the mean of its set; the mean of the set's other values, if one that is alone is
    worth 0 (leave_one_out) or keeps its value (others); or nothing."""
    scale: Literal["none", "group_std", "batch_std", "returns_std"] = "group_std"
    """Divides the difference: nothing (none), the sample standard deviation of the set (group_std), that of all
    differences (batch_std), or that of all values (returns_std)."""
    eps: float = Field(1e-6, ge=0)
    """Added to the standard deviation."""
    spread: Literal["episode", "to_go"] = "episode"
    """Compared values: returns of episodes, whose advantages all of their steps get, or each step's return-to-go."""

    shared: ClassVar[Shared] = {
        "baseline": "advantage_baseline",
        "scale": "advantage_scale",
        "eps": "advantage_eps",
        **ByReturn.shared,
    }

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(group_advantages, baseline=self.baseline, scale=self.scale, eps=self.eps)
        if self.spread == "episode":
            labels = [(each.group, SETS[self.among](each, 0)) for each in batch.trajectories]
            return Credit.per_episode(batch, how(batch.returns(self.discount), labels))
        values = batch.returns_to_go(self.discount)
        return Credit.of(split_like(how(np.concatenate(values), labels_of_steps(batch, self.among)), values))


@configured
class GiGPO(ByReturn):
    """The episode's return among its group, plus the step's return-to-go among the visits of its state.

    ``A_it = E_i + w S_it`` with ``E_i = R_i - mean_g R``, in which every episode counts once, and ``S_it = G_it`` less
    the mean of G over all visits of the same state in the group, in any episode and at any time; 0 for a state that was
    visited once (arXiv 2505.10978). ``G_it`` is discounted by 0.95, ``R_i`` is not, and ``w = 1``: the defaults of the
    authors' code (``gigpo/core_gigpo.py`` in langfengQ/DrMAS). Our reading: a state is the state of the game.
    ``same = "state_and_steps_left"`` is for games in which what can still be won depends on the rounds left.
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    episode_weight: float = Field(1.0, ge=0)
    """The weight of the episode's part, 1 in the paper; 0 leaves the step's alone."""
    scale: Scale = "none"
    """Divides both differences: nothing, or the standard deviation of the set."""
    same: Literal["state", "state_and_steps_left"] = "state"
    """Which visits are compared: those of the same state, or of the same state with as many rounds left."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        whole = within_groups(batch, batch.returns(), how)
        steps = within_steps(batch, self.same, batch.returns_to_go(self.discount), how)
        return Credit.of([self.episode_weight * e + self.step_weight * s for e, s in zip(whole, steps, strict=True)])


@configured
class Length:
    """Pays for short responses: 0 up to ``L_max - cache`` tokens, then falling to -1 at ``L_max``.

    DAPO's soft overlong punishment (arXiv 2503.14476): ``(L_max - cache - n) / cache`` for n tokens in between.
    """

    cache_share: float = Field(0.2, gt=0, le=1)
    """The share of the longest response within which the reward falls from 0 to -1."""
    max_response_tokens: int = Field(256, ge=1)
    """L_max, the most tokens of a response."""

    shared: ClassVar[Shared] = {"max_response_tokens": "max_response_tokens"}

    def pay(self, batch: Batch) -> list[Floats]:
        cache = self.cache_share * self.max_response_tokens
        lengths = [np.array([len(ids) for ids in each.response_ids], dtype=np.float64) for each in batch.trajectories]
        return [((self.max_response_tokens - cache - each) / cache).clip(-1.0, 0.0) for each in lengths]


@configured
class DAPO(ByReturn, Length):
    """The group-normalised return with a reward for length.

    ``A_i = z_g(R_i)``, with what :class:`Length` pays in the return (arXiv 2503.14476). The other parts of DAPO are
    choices elsewhere: ``clip_high = 0.28`` and the filter ``nonzero``, or a task sampler that refills the groups.
    """

    mask_truncated: bool = False
    """Give responses that were cut off at the token limit the advantage 0. They still count in the normaliser's Z and
    in their group's mean."""

    shared: ClassVar[Shared] = {**Length.shared, **ByReturn.shared}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        paid = self.pay(batch)
        more = np.array([float((each * self.discount ** np.arange(len(each))).sum()) for each in paid])
        advantages = within_groups(batch, batch.returns(self.discount) + more, standardised)
        metrics = {"length_reward": float(np.concatenate(paid).mean())}
        if not self.mask_truncated:
            return Credit.per_episode(batch, advantages)._replace(metrics=metrics)
        pairs = zip(batch.trajectories, advantages.tolist(), strict=True)
        return Credit.of([np.where(each.cut_off, 0.0, a) for each, a in pairs], metrics=metrics)


@configured
class PPOTurn(ByReturn):
    """GAE over turns with a critic, whitened over the batch.

    PPO whose actions are whole turns (Turn-PPO, arXiv 2512.17008): ``delta_t = r_t + gamma V(s_{t+1}) - V(s_t)``, ``A_t
    = sum_l (gamma lam)^l delta_{t+l}`` (GAE, arXiv 1506.02438), with one value per turn, at the last token of its
    prompt; nothing follows the last step, whether the game ended or the step limit cut it off. With gamma = lam = 1,
    the defaults of RAGEN (arXiv 2504.20073), it is ``G_t - V(s_t)``. The critic learns ``A_t + V(s_t)``, before
    whitening. Our reading: each step counts once in it, however long its response is.
    """

    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda: 0 trusts the critic's next value, 1 the return."""
    whiten: bool = True
    """Make the batch's advantages have mean 0 and standard deviation 1."""
    cut_goes_on: bool = False
    """An episode that the step limit cut off is worth after the cut what it was worth at its last step, and not 0."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    renamed: ClassVar[Shared] = {"gamma": "discount"}
    heads: ClassVar[Heads] = {"state": "step"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        advantages: list[Floats] = []
        targets: list[Floats] = []
        for each in batch.trajectories:
            values = each.values
            if values is None:
                raise ValueError(
                    'the trajectory has no values; a method that uses them declares needs = frozenset({"values"})'
                )
            after = float(values[-1]) if self.cut_goes_on and not each.terminated else 0.0
            own = gae(each.rewards, values, after, self.discount, self.lam)
            advantages.append(own)
            targets.append(own + values)
        return Credit.of(whitened(advantages) if self.whiten else advantages, value_targets={"state": targets})


def gae(rewards: Floats, values: Floats, after: float, gamma: float, lam: float) -> Floats:
    """Return (T,) ``A_t = sum_{l >= 0} (gamma lam)^l delta_{t+l}`` with ``delta_t = r_t + gamma V_{t+1} - V_t``.

    GAE (arXiv 1506.02438, section 3). ``values`` are (T,), before each of (T,) rewards, and
    ``after`` is ``V_T``, 0 if nothing follows. ``lam`` 0 trusts the values, 1 the rewards: ``A_t = G_t - V_t``.
    """
    return returns_to_go(rewards + gamma * np.append(values[1:], after) - values, gamma * lam)
