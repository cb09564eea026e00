"""Starts for trainers are training seeds, to the last one."""

import pytest

from textbench.integrations.starts import list_starts
from textgames import TRAINING_SEEDS


def test_no_start_lies_beyond_the_training_seeds():
    last = len(TRAINING_SEEDS) - 1
    assert [start.layout_seed for start in list_starts("frozen-lake", 2, first_seed=last - 1)] == [last - 1, last]
    with pytest.raises(ValueError, match=f"training seeds are 0 to {TRAINING_SEEDS[-1]}"):
        list_starts("frozen-lake", 2, first_seed=last)


def test_a_setting_that_starts_would_drop_is_refused():
    assert [start.seat for start in list_starts("snake", 1, num_players=2)] == ["player_0", "player_1"]
    with pytest.raises(ValueError, match=r"starts don't hold width=6, .* the option settings of SkyRL's environment"):
        list_starts("snake", 1, num_players=2, width=6)
