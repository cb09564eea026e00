"""Fresh rollouts for methods of credit: values of states, consequences of a step, and VinePPO, made of both.

Rules are pure, so an episode is begun again exactly: in the same state, with as many rounds left.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from agents.analysis.action_probabilities import has_local_model
from agents.episode import EpisodeTask
from agents.loop.live import environment_of
from agents.msgrpo.credit.arithmetic import compared, split_like, within_labels
from agents.msgrpo.credit.batch import Batch, Credit, FreshRollouts, Start, Trajectory
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.plugins import configured
from agents.policy import LanguageAgentPolicy
from agents.turn import Policy


class Place(NamedTuple):
    """The arguments of a value; ``elapsed`` rounds are 0 without a limit of steps, as they don't matter then."""

    scenario: str
    player: str
    state: Any
    elapsed: int
    team: tuple[str, ...] = ()


Ahead = tuple[float, float, Place | None]
"""A consequence of a step: its probability, its reward, and the place of the player's rest of the episode, if any."""


def place_of(trajectory: Trajectory, t: int) -> Place:
    """Return the place of step t of an episode."""
    task = task_of(trajectory)
    return Place(task.scenario, trajectory.player, trajectory.states[t], rounds_before(trajectory, t), task.team)


def realised(trajectory: Trajectory, t: int) -> Ahead:
    """Return what came of the step: up to the player's next decision, its end, or where the episode was left.

    If a decision has several steps, of a learner inside another player, the state doesn't tell what was answered
    in it so far. So what came of each of them includes the rest of the decision.
    """
    task = task_of(trajectory)
    start = task.start
    ahead: Place | None = None
    after = t + 1
    while after < len(trajectory) and trajectory.rounds[after] == trajectory.rounds[t]:
        after += 1
    if after < len(trajectory):
        ahead = place_of(trajectory, after)
    elif not trajectory.terminated and start is not None and start.rounds is not None:
        limit, elapsed = environment_of(task).rules.max_steps, start.elapsed_steps + start.rounds
        if limit is None or elapsed < limit:
            elapsed = 0 if limit is None else elapsed
            ahead = place_of(trajectory, t)._replace(state=trajectory.end_state, elapsed=elapsed)
    return 1.0, float(trajectory.rewards[t:after].sum()), ahead


def expected(trajectory: Trajectory, t: int) -> list[Ahead]:
    """Return what may have come of the step, up to the round after it, in a game of one mover that tells it."""
    if len(set(trajectory.rounds)) < len(trajectory) or any(trajectory.bought):
        raise ConfigError(
            "expected = true knows the game's rewards, and neither what a learner inside another player pays for "
            "answers nor what came of its questions: set expected = false in [credit.vine]"
        )
    env, here = environment_of(task_of(trajectory)), place_of(trajectory, t)
    game, player, action = env.game, trajectory.player, trajectory.actions[t]
    if not game.has_outcomes:
        raise ConfigError(
            f"expected = true needs a game that lists its outcomes, and {here.scenario} doesn't: set expected = "
            "false in [credit.vine]"
        )
    if game.to_move(here.state) != (player,):
        raise ConfigError(
            f"expected = true is for games in which one player moves at a time; in {here.scenario} several do: set "
            "expected = false in [credit.vine]"
        )
    penalty = 0.0 if trajectory.valid[t] else env.rules.format_penalty
    if not action:  # an invalid response that ended the episode
        return [(1.0, 0.0 - penalty, None)]
    elapsed = 0 if env.rules.max_steps is None else here.elapsed + 1
    cut_off = elapsed == env.rules.max_steps
    return [
        (
            chance,
            rewards.get(player, 0.0) - penalty,
            None if over or cut_off else here._replace(state=state, elapsed=elapsed),
        )
        for chance, state, rewards, over in game.outcomes(here.state, {player: action})
    ]


class StateValues:
    """Values of states by ``count`` fresh rollouts each; each is asked once."""

    def __init__(self, batch: Batch, count: int) -> None:
        if batch.rollouts is None:
            raise ValueError(
                "values by fresh rollouts need rollouts, and this batch has none: Batch(..., rollouts=...)"
            )
        self._rollouts: FreshRollouts = batch.rollouts
        self._count, self._before = count, batch.rollouts.tokens
        self._values: dict[Place, float] = {}
        self._tasks: dict[tuple[str, tuple[str, ...]], EpisodeTask] = {}
        for task in map(task_of, batch.trajectories):
            env = environment_of(task)
            if env.rules.invalid_action == "terminate" and len(env.possible_agents) > 1:
                raise ConfigError(
                    "fresh rollouts can't be used with invalid_action = 'terminate' in games of several players: a "
                    "state doesn't record which players were removed; accepted: default, random, noop"
                )
            self._tasks.setdefault((task.scenario, task.team), task)

    def ask(self, places: Iterable[Place]) -> None:
        new = [place for place in dict.fromkeys(places) if place not in self._values]
        if not new:
            return
        starts = [Start(self._tasks[each.scenario, each.team], each.state, each.elapsed, each.player) for each in new]
        returns = self._rollouts.returns_from(starts, self._count)
        self._values |= dict(zip(new, returns.mean(axis=1).tolist(), strict=True))

    def __getitem__(self, place: Place) -> float:
        return self._values[place]

    def worth(self, ahead: Iterable[Ahead]) -> float:
        """Return ``sum p (r + V)`` over what may follow a step: the value of the action."""
        return sum(p * (reward + (0.0 if then is None else self[then])) for p, reward, then in ahead)

    def metrics(self) -> dict[str, float]:
        return {
            "fresh_states": float(len(self._values)),
            "fresh_episodes": float(len(self._values) * self._count),
            "fresh_tokens": float(self._rollouts.tokens - self._before),
        }


def rounds_before(trajectory: Trajectory, t: int) -> int:
    """Return the rounds that count as played before step t; 0 without a limit of steps, if they don't matter."""
    start = task_of(trajectory).start
    return 0 if trajectory.steps_left[t] is None else trajectory.rounds[t] + (start.elapsed_steps if start else 0)


def refuse_history(policy: Policy) -> None:
    """Refuse a player whose prompts show earlier turns, which an episode that begins in a state doesn't have."""
    if (turns := getattr(policy, "history_turns", 0)) != 0:
        raise ConfigError(
            f"fresh rollouts begin in a state and know no earlier turns, but prompts show them (history_turns = "
            f"{turns}): use a prompt map with history_turns = 0"
        )


def local_policy(batch: Batch) -> LanguageAgentPolicy | None:
    """Return the policy that played a batch, with the model that an engine in this process has inside.

    ``None`` if it has no such model, or its prompts show earlier turns.
    """
    policy = None if batch.rollouts is None else batch.rollouts.policy
    if not isinstance(policy, LanguageAgentPolicy) or policy.history_turns:
        return None
    model: Any = getattr(policy.model, "local_model", policy.model)
    found = LanguageAgentPolicy(model, policy.prompt_map, policy.decoding)
    return found if has_local_model(found) else None


def task_of(trajectory: Trajectory) -> EpisodeTask:
    """Return the task of a trajectory, from which its game can be made again."""
    if trajectory.task is None:
        raise ValueError("fresh rollouts need to know the game: this trajectory has no task")
    return trajectory.task


@configured
class Vine:
    """Each step's reward and what follows it, less a baseline; values are means of fresh rollouts.

    VinePPO (arXiv 2410.01679): ``A_it = r_it + V(s_i,t+1) - V(s_it)`` with ``V(s)`` the mean return of ``rollouts``
    fresh episodes from s by the policy that played, with as many rounds left (our reading of the paper's contexts);
    ``V`` is 0 after the last step. With several players, ``s_i,t+1`` is the state in which the same player decides
    next; what is paid in between is in ``r_it``.

    With ``expected`` (our extension) what may come of a step takes the place of what came: ``A_it = sum_o p_o (r_o +
    V(s_o)) - V(s_it)`` over the outcomes o of the executed action, less the format penalty of an invalid response.

    ``baseline = "mean"`` compares the actions sampled in a state with each other: ``Q_m - mean_m Q`` with ``Q_m = r_m +
    V(s'_m)`` over the visits of a state, which needs no rollouts from the state itself.
    """

    rollouts: int = Field(9, ge=1)
    """Fresh episodes for the value of each state."""
    expected: bool = False
    """Average over all that may come of an action instead of taking what came; for games that tell their outcomes, in
    which one player moves at a time."""

    baseline: Literal["value", "mean"] = "value"
    """Subtracted from what a step is worth: the value of its state, for which fresh episodes begin there as well, or
    the mean of what all steps are worth that were taken in that state."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts"})

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        values = StateValues(batch, self.rollouts)
        steps = [(each, t) for each in batch.trajectories for t in range(len(each))]
        here = [place_of(*step) for step in steps]
        ahead = [expected(*step) if self.expected else [realised(*step)] for step in steps]
        following = [place for each in ahead for _, _, place in each if place is not None]
        values.ask([*here, *following] if self.baseline == "value" else following)
        worths, metrics = np.array([values.worth(each) for each in ahead]), values.metrics()
        if self.baseline == "value":
            advantages = worths - [values[place] for place in here]
        else:
            advantages = within_labels(here, worths, compared)
            samples = Counter(here)
            metrics["compared_steps"] = sum(samples[place] > 1 for place in here) / len(here)
        return Credit.of(split_like(advantages, batch.trajectories), metrics=metrics)
