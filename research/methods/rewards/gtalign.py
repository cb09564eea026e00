"""GTAlign: the welfare of both players in place of one's own payoff."""

import re
from itertools import product
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents import EpisodeTask
from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, Trajectory, task_of
from research.improve.around.with_payoffs import payoffs_in
from textgames import game_of


@configured
class GTAlign:
    """The welfare of both players in place of one's own payoff, and a payment for the game's payoffs in the answer.

    ``r_it = sqrt(u v) + w c`` (arXiv 2510.08872): u and v are what the round paid to the player and to the other one,
    less the least that the round can pay, and c is the share of the round's payoffs that the answer's ``<payoffs>``
    state rightly, each as ``own action, other's action: own payoff, other's payoff`` and ended by a semicolon. Our
    reading: the other player takes the user's place, and payoffs are those of the round, which the rules give exactly.
    If a learner inside another player answers several times in one decision, the last answer is paid.
    """

    matrix_weight: float = Field(0.5, ge=0)
    """w, the weight of stated payoffs; 0: the answer needn't have any."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        first = game.to_move(game.initial_state(np.random.default_rng(0)))
        if len(first) != 2 or len(game.players) != 2 or not game.has_outcomes:
            raise ConfigError(
                f"reward = 'gtalign' takes a game of two players that act at once and whose payoffs the rules list, "
                f"and {task.scenario} isn't one; accepted: prisoners-dilemma, stag-hunt, chicken"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        seats = {(task_of(each).seed, each.player): each for each in batch.trajectories}
        paid, right = list[Floats](), list[float]()
        for each in batch.trajectories:
            task, own = task_of(each), list[float]()
            game = game_of(task.env_id, **task.kwargs)
            (other,) = [player for player in game.players if player != each.player]
            if (partner := seats.get((task.seed, other))) is None:
                raise ConfigError(
                    "reward = 'gtalign' takes both players' rounds; accepted: self-play, without opponents"
                )
            mine_by, theirs_by = by_round(each), by_round(partner)
            for t, state in enumerate(each.states):
                if each.rounds[t] in each.rounds[t + 1 :]:
                    own.append(0.0)
                    continue
                table: dict[tuple[str, str], tuple[float, ...]] = {}
                for mine, his in product(game.legal_actions(state, each.player), game.legal_actions(state, other)):
                    outcomes = game.outcomes(state, {each.player: mine, other: his})
                    table[mine, his] = tuple(sum(p * r[one] for p, _, r, _ in outcomes) for one in (each.player, other))
                least = min(min(pair) for pair in table.values())
                right.append(float(np.mean([stated(each, t).get(key) == pair for key, pair in table.items()])))
                gains = (mine_by[each.rounds[t]] - least, theirs_by.get(each.rounds[t], least) - least)
                own.append(float(np.sqrt(np.maximum(gains, 0.0).prod()) + self.matrix_weight * right[-1]))
            paid.append(np.array(own, dtype=np.float64))
        self.metrics = {"payoffs_right": float(np.mean(right))}
        return paid


def by_round(each: Trajectory) -> dict[int, float]:
    """Return what each round paid the player, for all answers of its decision together."""
    paid = dict.fromkeys(each.rounds, 0.0)
    for at, reward in zip(each.rounds, each.rewards.tolist(), strict=True):
        paid[at] += reward
    return paid


def stated(each: Trajectory, t: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the payoffs that a response states, by own and other's action; of contradicting ones the last."""
    told = re.search(r"<payoffs>(.*?)</payoffs>", each.responses[t], re.DOTALL)
    return payoffs_in(told.group(1)) if told else {}
