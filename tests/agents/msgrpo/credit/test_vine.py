"""Vine: with exact values its mean is the true advantage; what is asked, once each; several players; what it costs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeStart, EpisodeTask
from agents.msgrpo import ConfigError, trajectories_of
from agents.msgrpo.credit import METHODS, Batch, Credit, Trajectory
from agents.msgrpo.credit.fresh import Vine
from tests.agents.msgrpo.hand_made import trajectory
from tests.agents.msgrpo.runs import INVALID, Exact, ExactRollouts, Known, play

LAKE = {"desc": ["SFF", "FHF", "FFG"], "is_slippery": True, "max_steps": 5, "format_penalty": 0.25}
RNG = np.random.default_rng(0)


def tasks_of(scenario: str, count: int, **settings: Any) -> list[EpisodeTask]:
    how = {"invalid_action": "default", **settings}
    return [EpisodeTask.of(scenario, seed, layout_seed=seed % 7, **how) for seed in range(count)]


def played(tasks: Sequence[EpisodeTask], policy: Known) -> list[Trajectory]:
    return trajectories_of(play(policy, tasks), tasks)


def assigned(trajectories: Sequence[Trajectory], fresh: Any, **settings: Any) -> Credit:
    return Vine(**settings).assign(Batch(trajectories, fresh), RNG)


def true_advantage(exact: Exact, each: Trajectory, t: int) -> float:
    state, left = each.states[t], each.steps_left[t]
    assert left is not None
    said = each.actions[t] if each.valid[t] else INVALID
    return exact.action_value(state, left, each.player, said) - exact.value(state, left, each.player)


@pytest.mark.parametrize(("scenario", "settings"), [("frozen-lake", LAKE), ("kuhn-poker", {"format_penalty": 0.25})])
def test_expected_outcomes_leave_no_luck_of_the_transition(scenario, settings):
    """With exact values, every single step is given exactly its true advantage, an invalid response's penalty too."""
    tasks = tasks_of(scenario, 60, **settings)
    trajectories = played(tasks, Known(share=0.3, invalid=0.2))
    exact = Exact(tasks[0], share=0.3, invalid=0.2)
    credit = assigned(trajectories, ExactRollouts(exact), expected=True)
    assert any(not each.valid.all() for each in trajectories)
    for each, advantages in zip(trajectories, credit.advantages, strict=True):
        np.testing.assert_allclose(advantages, [true_advantage(exact, each, t) for t in range(len(each))], atol=1e-12)


def test_by_hand():
    """Values 5, 3 and 4 of the states A, B and C: A = r + V(next) - V(here), and nothing after the last step."""

    class Told:
        tokens = 0
        policy: Any = None

        def returns_from(self, starts: Any, count: int) -> Any:
            self.asked = [(start.state, start.elapsed_steps) for start in starts]
            self.tokens += 7 * len(starts) * count
            values = [{"A": 5.0, "B": 3.0, "C": 4.0}[start.state] for start in starts]
            return np.array(values)[:, None] + np.linspace(-1, 1, count)  # only the mean counts

    task = EpisodeTask.of("frozen-lake", 0)
    begun = EpisodeTask("lake", task.env_id, 5, None, task.kwargs, (), EpisodeStart("A", 2))  # two rounds later
    one = trajectory([0.0, 1.0, 2.0], "ABA", horizon=9, task=task)
    other = trajectory([-1.0, 0.5], "AC", horizon=9, task=begun)
    rollouts = Told()
    credit = assigned([one, other], rollouts, rollouts=4)
    assert credit.advantages[0].tolist() == [0 + 3 - 5, 1 + 5 - 3, 2 - 5]  # type: ignore[union-attr]
    assert credit.advantages[1].tolist() == [-1 + 4 - 5, 0.5 - 4]  # type: ignore[union-attr]
    assert rollouts.asked == [("A", 0), ("B", 1), ("A", 2), ("A", 2), ("C", 3)]  # each once in a scenario
    assert credit.metrics == {"fresh_states": 5.0, "fresh_episodes": 20.0, "fresh_tokens": 7 * 20.0}
    np.testing.assert_allclose(credit.draw_weight, [(2 + 3 + 3) / 3, (2 + 3.5) / 2])
    compared = assigned([one, other], rollouts, baseline="mean")  # Q of A at round 0 alone; elsewhere one action each
    assert not np.concatenate([*compared.advantages]).any()


def test_what_can_not_be_is_refused_with_a_sentence():
    rollouts = ExactRollouts(Exact(tasks_of("frozen-lake", 1)[0]))
    many = played(tasks_of("kuhn-poker", 2, invalid_action="terminate"), Known())
    with pytest.raises(
        ConfigError, match="a state doesn't record which players were removed; accepted: default, random, noop"
    ):
        assigned(many, rollouts)
    at_once = played(tasks_of("prisoners-dilemma", 2, max_steps=2), Known())
    with pytest.raises(ConfigError, match="in prisoners-dilemma several do: set expected = false"):
        assigned(at_once, rollouts, expected=True)
    silent = played(tasks_of("TestButtons-v0", 2), Known())
    with pytest.raises(ConfigError, match="lists its outcomes, and TestButtons-v0 doesn't: set expected = false"):
        assigned(silent, rollouts, expected=True)
    with pytest.raises(ConfigError, match=r"\[credit.vine\] rollouts must be .* at least 1, got 0"):
        METHODS.make("vine", {"rollouts": 0})


def test_an_invalid_response_that_ends_the_episode():
    tasks = tasks_of("frozen-lake", 40, **{**LAKE, "invalid_action": "terminate"})
    trajectories = played(tasks, Known(invalid=0.5))
    ended = [each for each in trajectories if not each.valid[-1]]
    assert ended
    rollouts = ExactRollouts(Exact(tasks_of("frozen-lake", 1, **LAKE)[0]))
    for expected in (False, True):
        credit = assigned(ended, rollouts, expected=expected)
        for each, advantages in zip(ended, credit.advantages, strict=True):
            value = rollouts.exact.value(each.states[-1], each.steps_left[-1], "player_0")  # type: ignore[arg-type]
            assert advantages[-1] == pytest.approx(-0.25 - value)
