"""Credit for which the model is asked again: HCAPO scores its responses in hindsight, IGPO the planner's actions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

import textgames
from agents import EpisodeTask, TurnRequest, action_probabilities, request_in, response_logprobs
from agents.msgrpo import ConfigError, compared, configured
from agents.msgrpo.credit import (
    Batch,
    ByReturn,
    Credit,
    Floats,
    local_policy,
    returns_to_go,
    split_like,
    standardised,
    task_of,
    within_groups,
    within_steps,
)
from textgames import TSMG, Yardstick, find_yardstick

TOLD = "The episode will end like this:\n{end}\n\nNow:\n{now}"
TIE = 1e-9
_NOISE = 0x19B0


@configured
class HCAPO(ByReturn):
    """The episode's return among its group, plus what of it each step deserves as the model sees it in hindsight.

    The model scores its own responses again, with the last observation told in the prompt (arXiv 2603.08754, equations
    6 to 8, section 4.3 and appendix A): ::

        p_it   = exp(mean_k log pi(y_itk | prompt with the end) / temperature)
        rho_it = clip(p_it / mean_t p_it, 0.8, 1.2)
        Q_it   = rho_it gamma^(T_i - 1 - t) R_i,   then smoothing Q_it + (1 - smoothing) Q_i,t+1
        A_it   = z_g(R_i) + w z(Q_it) over the group's steps, the second part not below 0 in a success

    The pass over all responses isn't counted as tokens.
    """

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
    """The share of a step's own value, the rest being the next step's; 1 smooths nothing, the paper's option is 0.5."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return self.by_scores(batch, hindsight(batch))

    def by_scores(self, batch: Batch, scores: Sequence[Floats]) -> Credit:
        """Credit by (T_i,) mean log-probabilities of the responses in hindsight."""
        values = []
        for score, each in zip(scores, batch.trajectories, strict=True):
            likely = np.exp(score / self.temperature)
            ratio = np.clip(likely / likely.mean(), self.least, self.most)
            q = ratio * self.discount ** np.arange(len(score) - 1, -1, -1) * each.returned()
            values.append(self.smoothing * q + (1 - self.smoothing) * np.append(q[1:], q[-1:]))
        whole = within_groups(batch, batch.returns(), standardised)
        parts = zip(whole, within_steps(batch, "group", values, standardised), batch.trajectories, strict=True)
        return Credit.of([e + self.step_weight * (np.maximum(s, 0.0) if own.success else s) for e, s, own in parts])


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


@configured
class IGPO:
    """Each step's gain in the probability of what the planner would do, and the return at the end.

    Information gain (arXiv 2510.14967) in our reading for games: ``u_t = P_t+1 - P_t`` with ``P_t`` the probability
    that the policy gives in ``s_t`` to the planner's actions, those of the largest value by the game's yardstick.
    Advantages are returns-to-go of ``u`` less the mean of the group's other episodes that are alive at t. A step is
    praised for leading where the policy knows what is right, so that the optimum may change.
    """

    samples: int = Field(8, ge=1)
    """Responses for each state's probabilities, if they aren't known exactly."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})
    asks_alone: ClassVar[bool] = True
    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def check(self, task: EpisodeTask) -> None:
        game_and_yardstick(task)

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        ahead = [returns_to_go(paid) for paid in self.pay(batch)]
        how = partial(compared, baseline="others")
        return Credit.of(within_steps(batch, "time", ahead, how), metrics=self.metrics)

    def pay(self, batch: Batch) -> list[Floats]:
        """Return the gains, and the return as the last step's, so that other methods of credit can have them."""
        sureness, asked = self.sureness(batch)
        self.metrics = {
            "planner_probability": float(np.concatenate(sureness).mean()), "probabilities_asked": float(asked)
        }  # fmt: skip
        pairs = zip(batch.trajectories, sureness, strict=True)
        return [np.append(np.diff(sure), each.returned()) for each, sure in pairs]

    def sureness(self, batch: Batch) -> tuple[list[Floats], int]:
        """Return (T_i,) probabilities of the planner's actions in the visited states, and how many states there are."""
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
                    # of equally good actions those that are so with fewer rounds left, too: else dawdling is no worse
                    best[key] = yardstick.best_actions(state, left, each.player, TIE)
        told = action_probabilities(batch.rollouts.policy, list(places.values()), self.samples).probabilities
        chances = dict(zip(places, told, strict=True))
        flat = np.array([sum(chances[key].get(action, 0.0) for action in best[key]) for key in keys])
        return split_like(flat, batch.trajectories), len(places)


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
