"""Improvers that end in MS-GRPO: on the layouts of hard pairs (mixed), and with a document (internalise)."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from research.improve.methods.reinforcing import HardLayouts
from research.tests.rooms import DOCUMENT, ROOMS, SPARSE
from tests.agents.msgrpo.runs import iteration_of

SMALL = {"iterations": 4, "groups": 3, "group_size": 8, "rate": 0.003, "rank": 0, "episodes": 12}


@pytest.fixture
def reinforce(improve, reader):
    def run(method: str, scenario: str, **own: Any) -> tuple[str, float, float]:
        """Return what was said, and the reader's mean returns before and after."""
        given = ("--mode", "direct", "--temperature", 1)
        done = improve(method, reader, *given, scenario=scenario, scored=60, **(SMALL | own))
        return done.err, *done.scores("mean_return")

    return run


def test_groups_are_played_on_hard_layouts_alone():
    sampler = HardLayouts(layouts={"frozen-lake": [7, 9]})
    iteration = iteration_of("frozen-lake", groups=6, group_size=2)
    played = sampler.sample(iteration, np.random.default_rng(0))
    layouts = [each.task.layout_seed for each in played if each.task is not None]
    assert set(layouts) == {7, 9}
    assert layouts[::2] == layouts[1::2]  # of a whole group
    assert len({each.task.seed for each in played if each.task is not None}) == 12


@pytest.mark.slow
def test_mixed_prefers_where_it_is_easy_and_reinforces_the_rest(reinforce):
    """A red room pays 1 and others 0.2, so pairs of red rooms are the easy ones: 0.93 by chance, and 1.87 at best."""
    said, before, after = reinforce("mixed", ROOMS, easy=0.3, attempts=6, learning_rate=0.003, passes=8)
    easy, hard = map(int, re.search(r"(\d+) easy pairs of answers, (\d+) hard", said).groups())
    assert 0 < easy < hard
    assert before < 1.3
    assert after > before + 0.3
    first, preferring = map(float, re.search(r"episodes: ([\d.]+) before, ([\d.]+) after", said).groups())
    assert preferring > first + 0.1
    log = [json.loads(line) for line in Path("o/hard/metrics.jsonl").read_text().splitlines()]
    assert log[0]["kl"] == pytest.approx(0, abs=1e-4)  # it begins at the model that it is held to
    assert log[-1]["kl"] > log[0]["kl"]


@pytest.mark.slow
def test_mixed_is_done_where_no_pair_is_hard(reinforce):
    """In a game that is won or lost all differences are equal, and equal ones are easy together."""
    said, *_ = reinforce("mixed", SPARSE, attempts=2, passes=1)
    assert "all pairs are easy, so nothing is left to reinforce" in said
    assert not Path("o/hard").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("told", "learns"), [(DOCUMENT, True), ("?", False)])
def test_a_document_is_learnt_by_heart_and_one_that_tells_nothing_is_not(reinforce, tmp_path, told, learns):
    (tmp_path / "document.txt").write_text(told)
    options = {"attempts": 2, "learning_rate": 0.005, "passes": 2}
    said, before, after = reinforce("internalise", SPARSE, document=tmp_path / "document.txt", **options)
    assert before < 0.1
    if learns:
        reading = float(re.search(r"with the document: ([\d.]+)", said)[1])
        assert reading > 0.7
        assert after > reading - 0.15
    else:
        assert "it plays no better, so the agent stays as it was" in said
        assert after < 0.1
