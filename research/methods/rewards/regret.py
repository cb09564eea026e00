"""Regret: the growth of an episode's regret as a loss, in place of the game's reward."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents import EpisodeTask
from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, task_of
from textgames import game_of


@configured
class Regret:
    """Minus what each step adds to ``h`` of the episode's regret, in place of the game's reward.

    ``r_it = w_g (h(R_it) - h(R_i,t+1))``, with ``R_it`` the regret of the first t rounds to the best fixed action. It
    needs the payoffs of all actions, but no labels of good ones (the regret loss of arXiv 2403.16843). Group g is
    played against one sequence of losses and weighs ``w_g ~ max(mean_g R, 0)^focus``, 1 on average: a large focus looks
    at the worst sequence alone. Our reading: the loss is of sampled actions and spread over the steps as it grows; that
    of a policy's chances is in ``research.methods.regret_loss``.
    """

    h: Literal["linear", "square"] = "square"
    """The loss of a regret R: R itself (linear), or ``max(R, 0)^2`` (square)."""
    focus: float = Field(0.0, ge=0)
    """The power of a sequence's mean regret that it weighs by; 0: all weigh the same."""
    metric: str = "external_regret"
    """The regret, by its name among the game's metrics: also swap_regret, or regret in a bandit."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        known = game.metrics(game.initial_state(np.random.default_rng(0)), game.players[0])
        if self.metric not in known:
            raise ConfigError(
                f"[reward.regret] metric = {self.metric!r} is none of the metrics of {task.scenario} "
                f"({', '.join(known) or 'it has none'}); accepted: a regret among them, such as external_regret in "
                "online-iid and rock-paper-scissors"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        regrets = list[Floats]()
        for each in batch.trajectories:
            task = task_of(each)
            game = game_of(task.env_id, **task.kwargs)
            states = (*each.states, each.end_state)
            regrets.append(np.array([game.metrics(state, each.player)[self.metric] for state in states]))
        last = np.array([own[-1] for own in regrets])
        self.metrics = {self.metric: float(last.mean())}
        of_groups = [max(float(last[members].mean()), 0.0) ** self.focus for members in batch.groups.values()]
        weights = np.array(of_groups) / np.mean(of_groups) if any(of_groups) else np.ones(len(of_groups))
        weight_of = dict(zip(batch.groups, weights.tolist(), strict=True))
        grown = [own if self.h == "linear" else np.maximum(own, 0.0) ** 2 for own in regrets]
        pairs = zip(batch.trajectories, grown, strict=True)
        return [-weight_of[each.group] * np.diff(own) for each, own in pairs]
