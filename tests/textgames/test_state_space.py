"""State spaces by hand: what is reached within how many rounds, what a round pays, and how many states are kept."""

from collections.abc import Mapping

import numpy as np
import pytest

from textgames.solving.backward_induction import BackwardInduction
from textgames.solving.state_space import END, StateSpace
from textgames.tsmg import TSMG


class Stairs(TSMG[int]):
    """Steps 0 to ``top``: "up" climbs one, or with half a chance stays; the step above the top ends the game."""

    players = ("player_0",)
    actions = ("stay", "up")

    def __init__(self, top: int) -> None:
        self.top = top

    def initial_state(self, rng: np.random.Generator) -> int:
        return 0

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        raise AssertionError("it tells its outcomes")

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        stays = (0.5, state, {"player_0": 0.0}, False)
        if joint_action["player_0"] == "stay":
            return [(1.0, *stays[1:])]
        return [stays, (0.5, state + 1, {"player_0": 3.0}, state == self.top)]

    def observe(self, state: int, player: str) -> str:
        return str(state)

    def instructions(self, player: str) -> str:
        return ""


def test_everything_is_found_in_the_order_of_its_distance() -> None:
    space = StateSpace.of(Stairs(top=2), [0, 0], None, 3)
    assert space.numbers == {0: 0, 1: 1, 2: 2}
    assert (space.starts, space.within, space.rounds) == ((0, 0), (1, 2, 3, 3), None)
    assert space.first_round.tolist() == [0, 2, 4, 6]
    assert space.first_outcome.tolist() == [0, 1, 3, 4, 6, 7, 9]
    assert space.successors.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, END]
    assert space.rewards[:, 0].tolist() == [0.0, 1.5] * 3


def test_rounds_bound_what_is_looked_at() -> None:
    space = StateSpace.of(Stairs(top=5), [0], 2, 100)
    assert (space.within, space.rounds, len(space.decisions)) == ((1, 2, 3), 2, 2)
    whole = StateSpace.of(Stairs(top=2), [0], 3, 100)
    assert (whole.within, whole.rounds) == ((1, 2, 3, 3), None), "a third round finds nothing new: all is known"


def test_as_many_states_as_are_allowed_are_kept_and_not_one_more() -> None:
    assert len(StateSpace.of(Stairs(top=2), [0], None, 3).numbers) == 3
    with pytest.raises(ValueError, match=r"more than 2 states can be reached: too many to solve exactly"):
        StateSpace.of(Stairs(top=2), [0], None, 2)
    with pytest.raises(ValueError, match=r"more than 1 states can be reached within 1 rounds: no"):
        StateSpace.of(Stairs(top=2), [0], 1, 1, too_many="no")


def test_a_round_is_worth_what_it_pays_and_what_may_follow() -> None:
    space = StateSpace.of(Stairs(top=1), [0], None, 10)
    after = np.array([10.0, 20.0, 0.0])  # of the two states, and of the end
    assert space.round_values(space.rewards[:, 0], after).tolist() == [10.0, 16.5, 20.0, 11.5]
    assert space.round_values(space.rewards[:, 0], after, 1).tolist() == [10.0, 16.5]


def test_values_are_known_as_far_as_all_that_follows_is() -> None:
    solved = BackwardInduction(StateSpace.of(Stairs(top=9), [0], 3, 100), "player_0")
    for state in range(5):
        known = [steps for steps in range(5) if solved.covers(state, steps)]
        assert known == list(range(4 - state)), f"a step that is {state} above the start"
        assert [solved.value(state, steps) for steps in known] == [1.5 * steps for steps in known]
