"""Several samples of one start: unbiased figures over k of n, by hand, by all choices, and for a known policy."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.score.samples import worst_and_best

SLIPPERY = ("--scenario", "frozen-lake", "--agent", "random", "--agent", "planner")


def test_by_hand():
    lowest, highest = worst_and_best(np.array([[0.0, 1.0, 1.0, 0.0], [3.0, 1.0, 2.0, 2.0]]), 2)
    assert lowest.tolist() == pytest.approx([1 / 6, 9 / 6])  # 1 of 6 pairs; 1, 1, 1, 2, 2, 2
    assert highest.tolist() == pytest.approx([5 / 6, 15 / 6])  # all but 1 of 6; 3, 3, 3, 2, 2, 2
    values = np.array([[5.0, -1.0, 2.0]])
    assert [float(one[0]) for one in worst_and_best(values, 1)] == pytest.approx([2.0, 2.0])
    assert [float(one[0]) for one in worst_and_best(values, 3)] == [-1.0, 5.0]


def test_one_command_plays_the_samples_and_shows_what_k_of_them_make(textbench):
    command = ("run", *SLIPPERY, "--samples", 3, "--out", "s", "--quiet", "--episodes", 4)
    planned = textbench(*command, "--dry-run").out
    assert "(sample 2)" in planned
    assert "its smallest p-value is 0.12;" in planned  # of one comparison, whatever the samples
    done = textbench(*command, "--json")
    assert done.code == 0, done.err
    folders = [Path("s") / f"sample-{number}" for number in range(3)]
    assert [read_manifest(one)["settings"].get("resample") for one in folders] == [None, 1, 2]
    document = json.loads(done.out)
    # samples of an agent are neither its rivals nor further comparisons
    assert {row["agent"] for row in document["scores"]} == {"random", "planner"}
    assert (document["comparisons_family"], document.get("protocols")) == (1, None)
    (pair,) = json.loads(textbench("compare", "./s", "--json").out)["comparisons"]
    assert {pair["a"], pair["b"]} == {"random", "planner"}
    named = json.loads(textbench("compare", "random", "sample-1/random", "--in", "s", "--json").out)
    assert named["comparisons"][0]["pairs"] == 4

    rows = {(row["agent"], row["k"]): row for row in document["samples"]}
    assert rows.keys() == {(agent, k) for agent in ("random", "planner") for k in (2, 3)}
    played = [
        {record.seed: record for record in RunFolder.open(one).records() if record.agents["player_0"] == "random"}
        for one in folders
    ]
    figures = (("best", "returns", max), ("worst", "returns", min))
    figures += (("pass_at_k", "successes", max), ("pass_all_k", "successes", min))
    for k in (2, 3):
        row, planner = rows["random", k], rows["planner", k]
        assert (row["samples"], row["starts"]) == (3, 4)
        for key, of, chosen in figures:
            several = [
                chosen(getattr(one[seed], of)["player_0"] for one in some)
                for seed in played[0]
                for some in combinations(played, k)
            ]
            assert row[key]["value"] == pytest.approx(np.mean(several))
        assert planner["best"] == planner["worst"] == planner["mean"]  # it draws nothing: its samples are equal
    assert rows["random", 2]["others"] == ["sample-1/random", "sample-2/random"]
    brief = textbench("leaderboard", "s").out
    assert "sample-1" not in brief
    assert "best of 3" in brief
    shown = textbench("leaderboard", "s", "--stats").out
    assert "over samples of each start" in shown
    assert "pass^k" in shown


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (("--resample", 1), "--resample can't be given with --samples: leave one of them out"),
        (("--until", 0.1), "--until can't be given with --samples: leave one of them out"),
        (("--scenario", "nim"), "--samples is for games of one player, whose best of k and pass@k it gives, and nim"),
    ],
)
def test_what_samples_decide_is_not_given_besides_and_games_of_several_players_have_none(textbench, other, said):
    done = textbench("run", *SLIPPERY, "--samples", 2, "--out", "s", *other)
    assert (done.code, said in done.err) == (2, True)
    assert not Path("s").exists()
