"""IGPO, information gain as a reward for each turn (arXiv 2510.14967), in our reading for games.

The method rewards a turn with how much likelier it made the true answer: ``u_t = P_t+1 - P_t`` with ``P_t`` the
policy's probability of the answer before the turn; the last turn is rewarded with the outcome. Advantages are
returns-to-go of ``u`` less the group's mean, without a standard deviation.

Games have no answer to be sure of. Our reading takes ``P_t``, the probability that the policy gives in state ``s_t`` to
what the planner would do there: the actions of the largest value by the game's yardstick, and of those that are equally
good the ones that are still best with fewer rounds left, as nothing else tells dawdling from going on. The outcome is
the episode's return. The baseline is, as in ``rtg``, the mean of the other episodes of the group that are still alive
at t. So a step is praised for leading if the policy knows what is right; that needn't be if the game is won, and
the optimum may change: it isn't a method to begin with.

Probabilities are exact if the policy can tell them (:mod:`agents.analysis.action_probabilities`) and else shares of
``samples`` responses, whose tokens are on top of the episodes'.
"""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, TurnRequest, action_probabilities, request_in
from agents.msgrpo import ConfigError, compared, configured
from agents.msgrpo.credit import (
    Batch,
    Credit,
    Floats,
    Trajectory,
    returns_to_go,
    split_like,
    task_of,
    within_steps,
)
from textgames import TSMG, Yardstick, find_yardstick

TIE = 1e-9
_NOISE = 0x19B0


@configured
class IGPO:
    """Each step's gain in the probability of what the planner would do, and the return at the end."""

    samples: int = Field(8, ge=1)
    """Responses for each state's probabilities, if they aren't known exactly."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True

    def check(self, task: EpisodeTask) -> None:
        """Refuse a game without a yardstick."""
        game_and_yardstick(task)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        sureness, asked = self.sureness(batch)
        ahead = [returns_to_go(gains(each, sure)) for each, sure in zip(batch.trajectories, sureness, strict=True)]
        metrics = {"planner_probability": float(np.concatenate(sureness).mean()), "probabilities_asked": float(asked)}
        others = partial(compared, baseline="others")
        return Credit.of(within_steps(batch, "time", ahead, others), metrics=metrics)

    def sureness(self, batch: Batch) -> tuple[list[Floats], int]:
        """Return (T_i,) probabilities of the planner's actions in the visited states, and in how many they were asked
        for."""
        if batch.rollouts is None:
            raise ValueError("igpo asks the policy for probabilities: this batch has no rollouts")
        places: dict[Any, TurnRequest] = {}
        best: dict[Any, tuple[str, ...]] = {}
        games: dict[str, tuple[TSMG[Any], Yardstick]] = {}
        keys = []
        for each in batch.trajectories:
            scenario = task_of(each).scenario
            if scenario not in games:
                games[scenario] = game_and_yardstick(task_of(each))
            game, yardstick = games[scenario]
            for state, left in zip(each.states, each.steps_left, strict=True):
                key = (scenario, each.player, state, left)
                keys.append(key)
                if key not in places:
                    noise = (_NOISE, batch.iteration, len(places))
                    places[key] = request_in(game, state, each.player, left, seed=noise)
                    best[key] = yardstick.best_actions(state, left, each.player, TIE)
        told = action_probabilities(batch.rollouts.policy, list(places.values()), self.samples).probabilities
        chances = dict(zip(places, told, strict=True))
        flat = np.array([sum(chances[key].get(action, 0.0) for action in best[key]) for key in keys])
        return split_like(flat, batch.trajectories), len(places)


def gains(trajectory: Trajectory, sureness: Floats) -> Floats:
    """Return (T,) ``P_t+1 - P_t``, and the return at the last step."""
    return np.append(np.diff(sureness), trajectory.returned())


def game_and_yardstick(task: EpisodeTask) -> tuple[TSMG[Any], Yardstick]:
    """Return the game of a task and its yardstick.

    Raises:
        ConfigError: it has none.
    """
    game = textgames.parallel_env(task.env_id, **task.kwargs).game
    yardstick = find_yardstick(game)
    if yardstick is None:
        raise ConfigError(
            f"credit = 'igpo' measures by what a planner would do, and {task.scenario} has no yardstick: choose "
            "another method or game"
        )
    return game, yardstick
