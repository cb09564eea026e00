"""Credit among steps of a group that met the same states of the game: HGPO, G2PO, GAGPO, ECPO and SALT."""

from collections.abc import Hashable
from functools import partial

import numpy as np
from pydantic import Field

from agents.msgrpo import compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    Scale,
    Trajectory,
    averaged,
    gae,
    standardised,
    within_groups,
    within_steps,
)


@configured
class HGPO(ByReturn):
    """The return-to-go among steps with the same recent states, averaged over how many states are compared.

    For ``k = 1 .. K + 1`` the steps of a group that were reached through the same last k states form a cluster, in
    which ``a_k = (G_it - mean) / (std + 1e-6)`` with the population's std. ``A_it`` is the mean of the ``a_k`` that
    aren't 0, weighted by ``(k + 1)^alpha`` (arXiv 2602.22817; ``recipe/hgpo/core_hgpo.py`` of langfengQ/verl-agent).
    """

    history: int = Field(2, ge=0)
    """K, the states before the present one that are compared at most."""
    alpha: float = Field(1.0, ge=0)
    """How much more a longer history counts: its weight is (k + 1)^alpha."""
    base: bool = False
    """Whether the episode's own return takes part as well."""
    scale: Scale = "group_std"
    """Divides differences: the standard deviation of the set, or nothing, which is the authors' mean_norm."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        levels: list[tuple[int, list[Floats]]] = []
        if self.base:
            whole = zip(batch.trajectories, batch.returns(), strict=True)
            levels.append((0, within_steps(batch, "group", [np.full(len(each), value) for each, value in whole], how)))
        to_go, among = batch.returns_to_go(self.discount), partial(how, ddof=0)
        levels += [(k, within_steps(batch, partial(_last_states, k), to_go, among)) for k in range(1, self.history + 2)]
        weights, mixed = np.array([float(k + 1) ** self.alpha for k, _ in levels]), []
        for own in zip(*[level for _, level in levels], strict=True):  # (T,) of each level
            values = np.array(own)
            total, counted = weights @ values, weights @ (values != 0)
            mixed.append(total / np.where(counted > 0, counted, 1.0))
        return Credit.of(mixed)


def _last_states(k: int, trajectory: Trajectory, t: int) -> object:
    """Return the last k states up to step t; a step with fewer behind it is in a cluster of its own."""
    return trajectory.states[t + 1 - k : t + 1] if t + 1 >= k else object()


@configured
class G2PO(ByReturn):
    """The episode's return among its group, plus what the step gains on the graph of visited states.

    ``V(s)`` is the mean ``G`` of the group's visits of a state, and ``q_it = r_it + gamma V(s_i,t+1)``::

        A_it = (R_i - mean_g R) + w (c1_it + c2_it)
        c1   = q_it less the mean over all steps of the group that begin in the same state
        c2   = q_it - V(s_it) less the mean over all steps of the group

    (arXiv 2606.22995; ``g2po/core_g2po.py`` in Nala-YN/G2PO).
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's gains; 0 leaves the episode's part alone."""
    scale: Scale = "none"
    """Divides all three differences: nothing, or the standard deviation of the set."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go and of the next state's value."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        how = partial(compared, scale=self.scale)
        values = within_steps(batch, "state", batch.returns_to_go(self.discount), averaged)
        targets = [
            trajectory.rewards + self.discount * np.append(value[1:], 0.0)
            for trajectory, value in zip(batch.trajectories, values, strict=True)
        ]
        gains = [target - value for target, value in zip(targets, values, strict=True)]
        whole = within_groups(batch, batch.returns(), how)
        among_actions = within_steps(batch, "state", targets, how)
        among_steps = within_steps(batch, "group", gains, how)
        parts = zip(whole, among_actions, among_steps, strict=True)
        return Credit.of([e + self.step_weight * (c1 + c2) for e, c1, c2 in parts])


@configured
class GAGPO(ByReturn):
    """Advantages estimated from the mean returns of visited states, standardised within the group.

    GAE with the mean ``G`` of the group's visits of a state as its value, and no critic (arXiv 2605.13217, which has no
    public code; its discount and ``lam`` we couldn't find out).
    """

    lam: float = Field(0.95, ge=0, le=1)
    """Lambda: 0 looks one step ahead, to the next state's mean; 1 takes the return-to-go less the state's mean."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go and of the next state's value."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        values = within_steps(batch, "state", batch.returns_to_go(self.discount), averaged)
        estimated = [
            gae(trajectory.rewards, value, 0.0, self.discount, self.lam)
            for trajectory, value in zip(batch.trajectories, values, strict=True)
        ]
        return Credit.of(within_steps(batch, "group", estimated, standardised))


@configured
class ECPO(ByReturn):
    """The episode's return among its group, plus what an action gains in a state, as far as there is evidence of it.

    In a state s that the group visits, action a is taken ``n_a`` times and has the mean return-to-go ``m_a``::

        A_it = (R_i - mean_g R) + w e_s n_a / (n_a + k) (m_a - m_s),   e_s = between / (between + within)

    with m_s the mean of all visits and the variances of returns-to-go between and within actions there, so that few
    visits and noise count less (arXiv 2606.05885). Our reading, of its abstract: the paper's forms of both factors, and
    k, weren't read. An invalid response is an action of its own.
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the step's part; 0 leaves the episode's alone."""
    prior_visits: float = Field(1.0, ge=0)
    """k: with as many visits an action's mean counts half."""
    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step of returns-to-go."""

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole, to_go = within_groups(batch, batch.returns(), compared), batch.returns_to_go(self.discount)
        advantages = [np.full(len(own), value) for own, value in zip(to_go, whole, strict=True)]
        for steps in batch.visits().values():
            returns = np.array([to_go[i][t] for i, t in steps])
            taken = [batch.trajectories[i].actions[t] if batch.trajectories[i].valid[t] else "" for i, t in steps]
            _, action, counts = np.unique(taken, return_inverse=True, return_counts=True)
            means = (np.bincount(action, returns) / counts)[action]
            gains = means - returns.mean()
            between, within = np.mean(gains**2), np.mean((returns - means) ** 2)
            evidence = between / (between + within) if between > 1e-12 else 0.0
            shrunk = counts[action] / (counts[action] + self.prior_visits)
            for (i, t), gain in zip(steps, self.step_weight * evidence * shrunk * gains, strict=True):
                advantages[i][t] += gain
        return Credit.of(advantages)


@configured
class SALT(ByReturn):
    """The mean normalised return of all episodes of the group that took the same step.

    ``A_it`` is the mean of ``z_g(R_j)`` over the episodes j through the same edge ``(s, a, s')``, so that an edge which
    all share gets 0 (arXiv 2510.20022, as arXiv 2609.28963, appendix A.3, states it). An episode that goes through an
    edge twice counts once.
    """

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        whole = within_groups(batch, batch.returns(self.discount), standardised)
        advantages = [np.empty(len(trajectory)) for trajectory in batch.trajectories]
        for steps in batch.visits(_edge).values():
            shared = whole[sorted({i for i, _ in steps})].mean()
            for i, t in steps:
                advantages[i][t] = shared
        return Credit.of(advantages)


def _edge(trajectory: Trajectory, t: int) -> Hashable:
    """Return what tells an edge; an invalid response isn't the action that was taken for it.

    A trajectory lacks the state after its last step: what was paid and whether the rules ended the episode stand for
    it.
    """
    action = trajectory.actions[t] if trajectory.valid[t] else None
    if t + 1 < len(trajectory):
        return trajectory.states[t], action, trajectory.states[t + 1]
    return trajectory.states[t], action, trajectory.terminated, float(trajectory.rewards[t])
