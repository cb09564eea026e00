"""Starts for trainers are training seeds, to the last one."""

import pytest

from textbench.integrations import verl
from textbench.integrations.starts import list_starts
from textgames import TRAINING_SEEDS


def test_no_start_lies_beyond_the_training_seeds():
    last = len(TRAINING_SEEDS) - 1
    assert [start.layout_seed for start in list_starts("frozen-lake", 2, first_seed=last - 1)] == [last - 1, last]
    with pytest.raises(ValueError, match=f"training seeds are 0 to {TRAINING_SEEDS[-1]}"):
        list_starts("frozen-lake", 2, first_seed=last)
    with pytest.raises(ValueError, match="unknown seat 'player_2'"):
        list_starts("tic-tac-toe", seats=["player_2"])


def test_a_setting_that_starts_would_drop_is_refused():
    assert [start.seat for start in list_starts("snake", 1, num_players=2)] == ["player_0", "player_1"]
    with pytest.raises(ValueError, match=r"starts don't hold width=6, .* the option settings of SkyRL's environment"):
        list_starts("snake", 1, num_players=2, width=6)


def test_rows_of_verl_name_their_loop_and_start():
    rows = verl.start_rows("tic-tac-toe", 1, first_seed=3)
    told = [(row["agent_name"], row["layout_seed"], row["seat"]) for row in rows]
    assert told == [("textbench", 3, "player_0"), ("textbench", 3, "player_1")]
