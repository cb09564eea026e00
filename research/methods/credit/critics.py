"""Credit by what models beside the policy say: bi-level GAE and HiPER by critics, iStar by a reward model."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from agents.msgrpo import Shared, compared, configured
from agents.msgrpo.credit import (
    Batch,
    Bools,
    ByReturn,
    Credit,
    Floats,
    Heads,
    Preferences,
    Segment,
    Trajectory,
    gae,
    same,
    standardised,
    whitened,
    within_groups,
    within_steps,
)


@configured
class PPOBilevel(ByReturn):
    """GAE over turns, then over the tokens of each response, with a value for every token.

    GAE over turns, with the value before each response's last token, gives ``Ret_t``; then GAE inside each response,
    whose last token alone is rewarded, with ``Ret_t`` (RAGEN, arXiv 2504.20073, and its public code, which finds the
    ends of turns by rewards; here every response is a turn).
    """

    discount: float = Field(0.95, gt=0, le=1)
    """Discount per turn."""
    token_discount: float = Field(1.0, gt=0, le=1)
    """Discount per token within a response."""
    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda, of turns and of tokens."""
    whiten: bool = True
    """Make the advantages of the batch's tokens have mean 0 and standard deviation 1."""

    needs: ClassVar[frozenset[str]] = frozenset({"values"})
    renamed: ClassVar[Shared] = {"gamma_turn": "discount", "gamma": "token_discount"}
    heads: ClassVar[Heads] = {"token": "token"}

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        each, targets = [], []
        for trajectory in batch.trajectories:
            values, advantages = trajectory.head_values["token"], []
            ends = np.array([own[-1] for own in values])
            returns = gae(trajectory.rewards, ends, 0.0, self.discount, self.lam) + ends
            for own, last in zip(values, returns.tolist(), strict=True):
                rewards = np.zeros(len(own))
                rewards[-1] = last
                advantages.append(gae(rewards, np.asarray(own), 0.0, self.token_discount, self.lam))
            each.append(advantages)
            targets.append([a + own for a, own in zip(advantages, values, strict=True)])
        if self.whiten:
            flat = iter(whitened([own for advantages in each for own in advantages]))
            each = [[next(flat) for _ in advantages] for advantages in each]
        return Credit.of(each, value_targets={"token": targets})


class Levels(NamedTuple):
    """Numbers of a trajectory's steps for HiPER's levels, (T,) each; those of subgoals are NaN within options."""

    low: Floats
    high: Floats
    term: Floats


@configured
class HiPER(ByReturn):
    """Advantages of actions, subgoals and switches, each from a value of its own.

    An option begins at the first step and at each one whose response says SWITCH. With d its number of steps, and s'
    the state in which the next one begins (V_high = 0 if none does; arXiv 2602.16165 and its public code):

    * actions: GAE inside the option on V_low, with ``V_high(s')`` behind its last step;
    * subgoals: ``delta_k = sum_j gamma^j r_j + gamma^d V_high(s') - V_high(s)``,
      ``A_k = delta_k + gamma^d lam_options A_{k+1}``;
    * switches: the discounted rewards from a step to its option's end and ``gamma^(steps) V_high(s')``, minus V_term.

    Each is standardised over the batch's steps that have such tokens. Tokens of ``switch`` get the third, those of
    ``subgoal`` the second where an option begins and 0 elsewhere, and all others the first. V_high and V_term are read
    at the end of the prompt, V_low where the subgoal (or else the switch) has been written.
    """

    discount: float = Field(0.95, gt=0, le=1)
    """Discount per step."""
    lam: float = Field(0.95, ge=0, le=1)
    """GAE's lambda between the steps of an option."""
    lam_options: float = Field(0.95, ge=0, le=1)
    """GAE's lambda between options."""
    keep_penalty: float = Field(0.0, ge=0)
    """Subtracted from the reward of each step that keeps its subgoal; the authors mention about 0.3."""

    needs: ClassVar[frozenset[str]] = frozenset({"values", "segments"})
    renamed: ClassVar[Shared] = {"gamma": "discount"}
    heads: ClassVar[Heads] = {"low": "token", "high": "step", "term": "step"}
    parts: ClassVar[tuple[str, ...]] = ("switch", "subgoal", "action")

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        played = batch.trajectories
        starts = [begins_option(each) for each in played]
        made = [self._levels(*each) for each in zip(played, starts, strict=True)]
        targets = [aims for _, aims in made]
        levels = [_levels_of_tokens(each, t) for each in played for t in range(len(each))]  # of all steps of the batch
        scaled: dict[str, Floats] = {}
        for name in Levels._fields:
            flat = np.concatenate([getattr(own, name) for own, _ in made])
            used = np.array([name in own for own in levels]) & ~np.isnan(flat)
            flat[used] = standardised(flat[used], eps=1e-8, ddof=0)
            scaled[name] = np.where(used, flat, 0.0)  # 0 for the subgoals within an option
        tokens = iter([np.array([scaled[name][step] for name in own]) for step, own in enumerate(levels)])
        steps = len(levels) - len(played)  # those that may keep their subgoal
        return Credit.of(
            [[next(tokens) for _ in range(len(each))] for each in played],
            value_targets={
                "low": [_at_actions(each, aims.low) for each, aims in zip(played, targets, strict=True)],
                "high": [aims.high for aims in targets],
                "term": [aims.term for aims in targets],
            },
            metrics={"switch_rate": float(sum(each[1:].sum() for each in starts)) / max(1, steps)},
        )

    def _levels(self, trajectory: Trajectory, starts: Bools) -> tuple[Levels, Levels]:
        """Return the advantages and the targets of a trajectory's three levels."""
        told, places = trajectory.head_values, _places(trajectory)
        at_actions = np.array([tokens[place] for tokens, place in zip(told["low"], places, strict=True)])
        values = Levels(at_actions, np.asarray(told["high"]), np.asarray(told["term"]))
        rewards = trajectory.rewards - self.keep_penalty * ~starts
        borders = [*np.flatnonzero(starts).tolist(), len(rewards)]
        low, term = np.empty(len(rewards)), np.empty(len(rewards))
        high = np.full(len(rewards), np.nan)
        following = 0.0  # the advantage of the next option
        for first, end in reversed(list(pairwise(borders))):
            after = float(values.high[end]) if end < len(rewards) else 0.0
            paid, steps = rewards[first:end], end - first
            low[first:end] = gae(paid, values.low[first:end], after, self.discount, self.lam)
            to_go = gae(paid, np.zeros(steps), after, self.discount, 1.0)  # without values it is the discounted sum
            term[first:end] = to_go
            # to_go[0] holds the rewards of the option and what comes after it, discounted by gamma^d
            following = float(to_go[0] - values.high[first]) + self.discount**steps * self.lam_options * following
            high[first] = following
        advantages = Levels(low, high, term - values.term)
        return advantages, Levels(low + values.low, high + values.high, term)


def begins_option(trajectory: Trajectory) -> Bools:
    """Return (T,) whether a step begins an option: the first one, and those whose response says SWITCH."""
    said = [_part(parts, "switch") for parts in _segments(trajectory)]
    starts = np.array([part is not None and part.text.strip().casefold() == "switch" for part in said], dtype=np.bool_)
    starts[:1] = True
    return starts


def _segments(trajectory: Trajectory) -> tuple[tuple[Segment, ...], ...]:
    if trajectory.segments is None:
        raise ValueError('the trajectory has no segments; a method that uses them declares needs = {"segments"}')
    return trajectory.segments


def _part(parts: Sequence[Segment], name: str) -> Segment | None:
    return next((part for part in parts if part.name == name), None)


def _places(trajectory: Trajectory) -> list[int]:
    """Return the token of each response before which V_low is read: behind the subgoal, else the switch, or the
    first."""
    places = []
    for parts, response in zip(_segments(trajectory), trajectory.response_ids, strict=True):
        written = (part for name in ("subgoal", "switch") if (part := _part(parts, name)) is not None)
        places.append(next((part.stop for part in written if part.stop < len(response)), 0))
    return places


def _at_actions(trajectory: Trajectory, targets: Floats) -> list[Floats]:
    """Return T arrays (K_t,) with a step's target at the place of V_low, and NaN elsewhere."""
    result = []
    for response, place, target in zip(trajectory.response_ids, _places(trajectory), targets.tolist(), strict=True):
        tokens = np.full(len(response), np.nan)
        tokens[place] = target
        result.append(tokens)
    return result


def _levels_of_tokens(trajectory: Trajectory, t: int) -> list[str]:
    """Return, for each token of a response, the level whose advantage it gets."""
    levels = ["low"] * len(trajectory.response_ids[t])
    for part in _segments(trajectory)[t]:
        if part.name in ("switch", "subgoal"):
            levels[part.start : part.stop] = ["term" if part.name == "switch" else "high"] * (part.stop - part.start)
    return levels


@configured
class IStar(ByReturn):
    """The episode's return less that of its group's others, plus the same of rewards that a reward model has learnt.

    By how much likelier the reward model takes a response to be than the policy does is its reward ``q_it`` of the step
    (arXiv 2509.19199 and the authors' public code): ::

        A_it = (R_i - mean_j R_j) + w (r_it - mean_js r_js),   r_it = q_it / max |q|

    with means over the group's other episodes, and over its other steps. Our reading: of two episodes of a group the
    one with the higher return is the better one, and the loss reaches the reward model's weights.
    """

    step_weight: float = Field(1.0, ge=0)
    """w, the weight of the steps' rewards; 0 leaves the episode's return alone."""
    beta: float = Field(0.05, gt=0)
    """What a log-ratio is multiplied by to be a reward, in the loss of the reward model."""
    rate: float = Field(2.0, gt=0)
    """The reward model's learning rate, as a multiple of the policy's. One that is slower than the policy stays behind,
    and its rewards pull the policy back to its beginning."""

    needs: ClassVar[frozenset[str]] = frozenset({"reward_model"})

    def beside(self, scorer: Any, config: Any, processes: Any, packing: str) -> Any:
        from research.methods.reward_model import RewardModel

        return RewardModel(scorer, config, processes, packing=packing, rate=self.rate)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        returns, others = batch.returns(self.discount), partial(compared, baseline="others")
        ratios = [each.log_ratios for each in batch.trajectories if each.log_ratios is not None]
        if len(ratios) < len(batch):
            raise ValueError('the trajectory has no log_ratios; a method that uses them says needs = {"reward_model"}')
        largest = float(np.abs(np.concatenate(ratios)).max())
        steps = within_steps(batch, "group", [ratio / (largest or 1.0) for ratio in ratios], others)
        whole = within_groups(batch, returns, others)
        pairs = [
            (i, j)
            for places in batch.groups.values()
            for i in places
            for j in places
            if returns[i] > returns[j] and not same(returns[i : i + 1], returns[j])[0]
        ]
        return Credit.of(
            [e + self.step_weight * s for e, s in zip(whole, steps, strict=True)],
            metrics={"reward_log_ratio": largest, "preferences": float(len(pairs))},
            preferences=Preferences(pairs, self.beta),
        )
