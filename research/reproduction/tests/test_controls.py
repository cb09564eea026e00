"""The controls tell a player that reads its board from one that doesn't."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents import Turn, TurnRequest, load_agent
from research.reproduction.controls import ShuffledObservations, control


class Blind:
    """Says and does the same whatever it reads, apart from the noise of its seed."""

    name = "blind"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        rngs = [np.random.default_rng(one.seed) for one in requests if isinstance(one, TurnRequest)]
        return [
            Turn(f"<think>goal is right and down</think><action>{('right', 'down')[rng.integers(2)]}</action>")
            for rng in rngs
        ]


def test_a_player_that_reads_its_board_is_told_from_one_that_does_not():
    reads = control(load_agent("planner"), "frozen-lake", 20)
    assert reads.returned == 1.0
    assert reads.returned_shuffled < 0.8
    assert reads.agreement_again == 1.0
    assert reads.agreement_shuffled < 0.9
    assert reads.unreadable == 1.0  # it speaks another language than the statements that are checked

    blind = control(Blind(), "frozen-lake", 60)
    assert blind.returned_shuffled == blind.returned
    assert blind.agreement_again == blind.agreement_shuffled
    assert blind.agreement_again == pytest.approx(0.5, abs=0.12)
    assert blind.truth == blind.truth_shuffled > 0.5
    assert blind.unreadable == 0.0


def test_donors_come_from_other_episodes_and_depend_on_the_decision_alone():
    shuffled = ShuffledObservations(Blind(), [(1, "a"), (1, "b"), (2, "c"), (3, "d")])
    donors = [shuffled.donor((1, step)) for step in range(50)]
    assert set(donors) == {"c", "d"}
    assert donors == [shuffled.donor((1, step)) for step in range(50)]
    with pytest.raises(ValueError, match="at least two episodes"):
        ShuffledObservations(Blind(), [(1, "a")]).donor((1, 0))
