"""A size that nobody means is one error, in every registered game: no memory, no minutes, no other exception."""

import json
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import gymnasium as gym
import pytest

from tests.textgames.absurd_sizes import ABSURD
from textgames.settings import MOST

ROOT = Path(__file__).parents[2]
MEMORY = 3 * 2**30  # of addresses, with all that is imported


@pytest.mark.slow
def test_every_whole_number_of_every_game():
    done = subprocess.run(
        [sys.executable, "-m", "tests.textgames.absurd_sizes"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tried = defaultdict(dict)
    for line in map(json.loads, done.stdout.splitlines()):
        tried[line["id"], line["setting"]][line["value"]] = line
    assert {("TextFrozenLake-v0", "size"), ("TextSnake-v0", "width"), ("TextBandit-v0", "rounds")} < tried.keys()
    assert len(tried) > 80
    for (id, setting), lines in tried.items():
        assert set(lines) == set(ABSURD)
        for value, line in lines.items():
            assert line["seconds"] < 10, line
            if setting == "max_steps":  # a limit that is never reached takes nothing
                assert line["said"] is None, line
            else:
                name = setting.partition(".")[2] or setting
                assert f"ValueError: {name} must be a whole number from " in line["said"], (id, line)
                assert f"got {value}" in line["said"], (id, line)


@pytest.mark.parametrize(("id", "name"), [("TextFrozenLake-v0", "size"), ("TextSnake-v0", "width")])
def test_the_largest_that_is_accepted_can_be_played(id, name):
    env = gym.make(id, **{name: 100})
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    with pytest.raises(ValueError, match=f"{name} must be a whole number from [12] to 100, got 101"):
        gym.make(id, **{name: 101})


def test_the_longest_that_is_accepted_can_be_played():
    for id, name in (
        ("TextBandit-v0", "rounds"),
        ("TextOnlineLearning-v0", "rounds"),
        ("TextWordGuess-v0", "max_guesses"),
    ):
        env = gym.make(id, **{name: MOST})
        _, info = env.reset(seed=0)
        env.step((info["legal_actions"] or ("",))[0])
