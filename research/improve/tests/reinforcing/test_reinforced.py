"""Improvers that end in MS-GRPO: on the layouts of hard pairs (mixed), and with a document (internalise)."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from research.improve.methods.reinforcing.mixed import HardLayouts
from research.tests.rooms import DOCUMENT, ROOMS, SPARSE
from tests.agents.msgrpo.played import iteration_of

SMALL = {"iterations": 4, "groups": 3, "group_size": 8, "rate": 0.003, "rank": 0, "episodes": 12}


@pytest.fixture
def improve(textbench, reader):
    """Return what ``textbench improve METHOD`` said of the reader, and its scores before and after."""

    def run(method: str, scenario: str, **own: Any) -> tuple[str, float, float]:
        settings = [part for name, value in (SMALL | own).items() for part in ("--set", f"{name}={value}")]
        done = textbench(
            *("improve", method, "--agent", reader, "--mode", "direct", "--temperature", 1, "--scenario", scenario),
            *("--out", "o", "--eval-episodes", 60, "--json", *settings),
        )
        assert done.code == 0, done.err
        about = json.loads(Path("o/improvement.json").read_text())
        return done.err, *[about[when][0]["mean_return"]["value"] for when in ("before", "after")]

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
def test_mixed_prefers_where_it_is_easy_and_reinforces_the_rest(improve):
    """A red room pays 1 and others 0.2, so pairs of red rooms are the easy ones: 0.93 by chance, and 1.87 at best."""
    pytest.importorskip("trl")
    said, before, after = improve("mixed", ROOMS, easy=0.3, attempts=6, learning_rate=0.003, passes=8)
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
def test_mixed_is_done_where_no_pair_is_hard(improve):
    """In a game that is won or lost all differences are equal, and equal ones are easy together."""
    pytest.importorskip("trl")
    said, *_ = improve("mixed", SPARSE, attempts=2, passes=1)
    assert "all pairs are easy, so nothing is left to reinforce" in said
    assert not Path("o/hard").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("told", "learns"), [(DOCUMENT, True), ("?", False)])
def test_a_document_is_learnt_by_heart_and_one_that_tells_nothing_is_not(improve, tmp_path, told, learns):
    (tmp_path / "document.txt").write_text(told)
    said, before, after = improve(
        "internalise", SPARSE, document=tmp_path / "document.txt", attempts=2, learning_rate=0.005, passes=2
    )
    assert before < 0.1
    if learns:
        reading = float(re.search(r"with the document: ([\d.]+)", said)[1])
        assert reading > 0.7
        assert after > reading - 0.15
    else:
        assert "it plays no better, so the agent stays as it was" in said
        assert after < 0.1
