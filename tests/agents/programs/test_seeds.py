"""No program finds out which episode it plays: the seed never enters its process, whatever the program reads there."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.programs.sandbox import Call, Sandbox
from tests.agents.programs.test_sandbox import REACH
from tests.agents.programs.test_sandbox import pytestmark as pytestmark  # these need the kernel's locks, too
from textgames.scenarios import SCENARIOS

# every whole number in what the frames of a call hold: the program's, the worker's, and what these refer to
NUMBERS = f"""{REACH}

def numbers(limit=300):
    found, open_ones, known = dict(), [], set()  # in the order of how near they are
    frame = modules()["sys"]._getframe()
    while frame is not None:
        open_ones += [*frame.f_locals.values()]
        frame = frame.f_back
    while open_ones and len(known) < limit:
        one = open_ones.pop(0)
        if id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, int):
            found[int(one)] = None
        elif isinstance(one, dict):
            open_ones += [*one.keys(), *one.values()] if len(one) < 100 else []
        elif isinstance(one, (list, tuple, set, frozenset)):
            open_ones += list(one)[:100]
        else:
            for name in ("args", "keywords", "func", "__closure__", "__self__", "__dict__", "cell_contents"):
                open_ones.append(getattr(one, name, None))
    return found
"""


def test_a_program_that_knows_what_every_seed_hides_doesnt_know_the_seed(tmp_path: Path) -> None:
    """The seeds are public, so a program can carry the hidden number of each, here by 7 times the seed."""
    game, seeds = SCENARIOS["guess-number"].game(), range(10_000, 10_050)
    hidden = {7 * seed: game.initial_state(np.random.default_rng(seed)).secret for seed in seeds}
    file = tmp_path / "reader.py"
    file.write_text(
        f"{NUMBERS}\nHIDDEN = {hidden!r}\ndef act(observation, legal):\n"
        "    return next((HIDDEN[7 * one] for one in numbers() if 7 * one in HIDDEN), '50')\n"
    )
    tasks = [EpisodeTask.of("guess-number", seed) for seed in seeds]
    played = list(rollout(load_agent(f"program:{file}"), tasks))
    assert "the program failed" not in played[0].steps[0].turn.response.lower()
    at_once = sum(len(episode.steps) == 1 for episode in played)
    assert at_once == sum(number == "50" for number in hidden.values()), f"{at_once} of 50 are guessed at once"
