"""Reward rules of neighbouring papers: agreement of a group (EMPO), fewer calls (OTC), mutual welfare (GTAlign)."""

import re
from collections import Counter
from itertools import product
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask
from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, Trajectory, same, task_of

RewardMode = Literal["add", "replace"]


@configured
class EMPO:
    """The share of a group's episodes that gave the same answer to the same prompt, in place of the game's reward.

    A prompt is a state with its rounds left, and answers that name one action are one semantic cluster (arXiv
    2504.05812). ``r_it = |cluster| / |group| / T_i``: an episode is paid the mean over its steps, so that a longer one
    isn't paid more. An invalid answer is paid 0. Agreement on a wrong action is paid as well.
    """

    least_entropy: float = Field(0.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is less, as a share of the largest that so many can have."""
    most_entropy: float = Field(1.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is more."""

    reward_mode: ClassVar[RewardMode] = "replace"
    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        played = batch.trajectories
        paid, entropies, several = [np.zeros(len(each)) for each in played], 0.0, 0
        for (group, _), steps in batch.visits(lambda each, t: (each.states[t], each.steps_left[t])).items():
            # an invalid answer is a cluster of its own
            named = [played[i].actions[t] if played[i].valid[t] else (i, t) for i, t in steps]
            counts, all_of = Counter(named), len(batch.groups[group])
            shares = np.array([*counts.values()]) / len(steps)
            entropy = float(-(shares * np.log(shares)).sum())
            entropies, several = entropies + entropy * len(steps), several + len(steps) * (len(steps) > 1)
            if self.least_entropy <= entropy / np.log(max(2, len(steps))) <= self.most_entropy:
                for (i, t), answer in zip(steps, named, strict=True):
                    paid[i][t] = counts[answer] / all_of / len(paid[i]) * played[i].valid[t]
        self.metrics = {"answer_entropy": entropies / max(1, several)}
        return paid


@configured
class OTC:
    """The game's rewards above 0, times a factor that falls with the calls beyond those that were needed.

    With m calls in an episode and n in the shortest of its group's best ones (arXiv 2504.14870, OTC-GRPO): ::

        factor = sin(f pi / (2 n)),   f = 2 m n / (m + n)

    which is 1 for m = n and falls to 0. With a ``constant`` c it is OTC-PPO's ``cos(m pi / (2 m + c))``. Our reading: a
    call is a decision, which the environment answers; the best episodes are those of the highest return, where the
    paper has correct answers; and a loss isn't made smaller by calls.
    """

    calls: Literal["steps", "tokens"] = "steps"
    """The calls that are spared: decisions of an episode, or response tokens."""
    constant: float = Field(0.0, ge=0)
    """c of OTC-PPO, by which a call costs less; 0: OTC-GRPO's factor."""

    reward_mode: ClassVar[RewardMode] = "replace"

    @property
    def evaluates(self) -> bool:
        return self.constant > 0

    def pay(self, batch: Batch) -> list[Floats]:
        played, returns = batch.trajectories, batch.returns()
        m = np.array([max(1, len(each) if self.calls == "steps" else each.tokens) for each in played], dtype=np.float64)
        n = np.ones(len(played))
        for members in batch.groups.values():
            own = returns[members]
            n[members] = m[members][same(own, own.max())].min()
        # f / (2 n) = m / (m + n); an episode with fewer calls than the best ones isn't paid less for it
        angle = np.maximum(m, n) / (np.maximum(m, n) + n)
        factor = np.cos(m * np.pi / (2 * m + self.constant)) if self.constant else np.sin(angle * np.pi)
        self.metrics = {"call_factor": float(factor.mean())}
        pairs = zip([each.rewards for each in played], factor, strict=True)
        return [np.where(rewards > 0, rewards * f, rewards) for rewards, f in pairs]


@configured
class GTAlign:
    """The welfare of both players in place of one's own payoff, and a payment for the game's payoffs in the answer.

    ``r_it = sqrt(u v) + w c`` (arXiv 2510.08872): u and v are what the round paid to the player and to the other one,
    less the least that the round can pay, and c is the share of the round's payoffs that the answer's ``<payoffs>``
    state rightly, each as ``own action, other's action: own payoff, other's payoff`` and ended by a semicolon. Our
    reading: the other player takes the user's place, and payoffs are those of the round, which the rules give exactly.
    """

    matrix_weight: float = Field(0.5, ge=0)
    """w, the weight of stated payoffs; 0: the answer needn't have any."""

    reward_mode: ClassVar[RewardMode] = "replace"
    evaluates: ClassVar[bool] = False

    def check(self, task: EpisodeTask) -> None:
        game = textgames.parallel_env(task.env_id, **task.kwargs).game
        both = game.to_move(game.initial_state(np.random.default_rng(0)))
        if len(both) != 2 or not game.has_outcomes:
            raise ConfigError(
                f"reward = 'gtalign' takes a game of two players that act at once and whose payoffs the rules list, "
                f"and {task.scenario} isn't one; accepted: prisoners-dilemma, stag-hunt, chicken"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        seats = {(task_of(each).seed, each.player): each for each in batch.trajectories}
        paid, right = list[Floats](), list[float]()
        for each in batch.trajectories:
            task, own = task_of(each), list[float]()
            game = textgames.parallel_env(task.env_id, **task.kwargs).game
            (other,) = [player for player in game.players if player != each.player]
            if (partner := seats.get((task.seed, other))) is None:
                raise ConfigError(
                    "reward = 'gtalign' takes both players' rounds; accepted: self-play, without opponents"
                )
            theirs = dict(zip(partner.rounds, partner.rewards, strict=True))
            for t, state in enumerate(each.states):
                table: dict[tuple[str, str], tuple[float, ...]] = {}
                for mine, his in product(game.legal_actions(state, each.player), game.legal_actions(state, other)):
                    outcomes = game.outcomes(state, {each.player: mine, other: his})
                    table[mine, his] = tuple(sum(p * r[one] for p, _, r, _ in outcomes) for one in (each.player, other))
                least = min(min(pair) for pair in table.values())
                right.append(float(np.mean([stated(each, t).get(key) == pair for key, pair in table.items()])))
                gains = (each.rewards[t] - least, theirs.get(each.rounds[t], least) - least)
                own.append(float(np.sqrt(np.maximum(gains, 0.0).prod()) + self.matrix_weight * right[-1]))
            paid.append(np.array(own, dtype=np.float64))
        self.metrics = {"payoffs_right": float(np.mean(right))}
        return paid


_CELL = re.compile(r"(\w+)\s*,\s*(\w+)\s*:\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*(?:;|$)")


def stated(each: Trajectory, t: int) -> dict[tuple[str, str], tuple[float, ...]]:
    """Return the payoffs that a response states, by own and other's action; of contradicting ones the last."""
    told = re.search(r"<payoffs>(.*?)</payoffs>", each.responses[t], re.DOTALL)
    cells = _CELL.findall(told.group(1)) if told else []
    return {(mine, his): (float(own), float(other)) for mine, his, own, other in cells}
