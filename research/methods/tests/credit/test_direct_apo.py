"""Direct advantage optimisation: branches of visited states, and advantages among them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeStart, EpisodeTask
from agents.msgrpo.credit import METHODS, Batch
from research.methods.tasks.starts import Branches
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.hand_made import trajectory
from tests.agents.msgrpo.played import iteration_of

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("scenario", ["frozen-lake-slippery", "snake-duel"])
def test_every_visited_state_has_so_many_samples(scenario):
    """Counted over episodes and branches, whoever is to move; and every branch is one round from a visited state."""
    iteration = iteration_of(scenario, Known(share=0.2), groups=2, group_size=4, format_penalty=0.25, max_steps=6)
    trajectories = Branches(actions=5).sample(iteration, RNG)
    episodes = [each for each in trajectories if each.begins_a_game]
    branches = [each for each in trajectories if not each.begins_a_game]
    assert branches

    def places(each: Any) -> list[Any]:
        before = each.task.start.elapsed_steps if each.task.start else 0
        return [(each.player, state, before + t) for state, t in zip(each.states, each.rounds, strict=True)]

    visited = Counter(place for each in episodes for place in places(each))
    sampled = Counter(place for each in trajectories for place in places(each))
    assert sampled.keys() == visited.keys()
    assert {max(5, count) for count in visited.values()} == set(sampled.values())
    assert all(len(each) == 1 for each in branches)
    for each in branches:
        assert each.steps_left[0] == 6 - each.task.start.elapsed_steps  # type: ignore[union-attr,operator]
    assert len({each.task.seed for each in branches}) == len({id(each.task) for each in branches})  # type: ignore[union-attr]
    assert {each.begins_a_game for each in iteration.played} == {True, False}  # the log knows what it cost
    fewer = Branches(actions=9, most_states=2).sample(iteration, RNG)
    assert len({each.task.start for each in fewer if not each.begins_a_game}) == 2  # type: ignore[union-attr]


def test_by_hand():
    """Two visits of A and a branch of it; values 5 of B and 1 of C: Q is 0 + 5, 2 (the end) and 1 + 1, their mean 3."""

    class Told:
        tokens = 0
        policy: Any = None

        def returns_from(self, starts: Any, count: int) -> Any:
            self.asked = [(start.state, start.elapsed_steps, count) for start in starts]
            return np.array([[{"B": 5.0, "C": 1.0}[start.state]] * count for start in starts])

    task = EpisodeTask.of("frozen-lake", 0, max_steps=9)
    branch = EpisodeTask("frozen-lake", task.env_id, 1, None, task.kwargs, (), EpisodeStart("A", 0, rounds=1))
    one = trajectory([0.0, 3.0], "AB", horizon=9, task=task)
    other = trajectory([2.0], "A", horizon=9, task=task)
    left = trajectory([1.0], "A", horizon=9, task=branch, group=1, terminated=False, end_state="C")
    rollouts = Told()
    credit = METHODS.make("direct_apo", {"rollouts": 3}).assign(Batch([one, other, left], rollouts), RNG)
    assert [np.asarray(each).tolist() for each in credit.advantages] == [[2.0, 0.0], [-1.0], [-1.0]]
    assert rollouts.asked == [("B", 1, 3), ("C", 1, 3)]
    assert credit.metrics["compared_steps"] == 3 / 4
