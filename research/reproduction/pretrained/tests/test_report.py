"""The figures and the report of the experiment with a pretrained model, from results that are known."""

import numpy as np
import pytest

from research.reproduction.pretrained.findings import Findings, Fresh, Trained
from research.reproduction.pretrained.jobs import jobs_of
from research.reproduction.pretrained.report import report_markdown
from research.reproduction.pretrained.settings import Pretrained
from research.reproduction.pretrained.tests.helpers import write_recipe

COMMAND = "textbench reproduce --config recipe.toml"


@pytest.fixture
def experiment(tmp_path):
    return Pretrained.read(write_recipe(tmp_path, "some-model"))


def fresh(*runs: list[float], unseen: list[int] | None = None, of: int = 0) -> Fresh:
    returns = np.array(runs, dtype=np.float64)
    marks = np.ones_like(returns) if unseen is None else np.array([unseen] * len(runs), dtype=np.float64)
    return Fresh(returns, returns, marks, 0.25, of or len(runs), (0.0, 1.0))


def found(experiment: Pretrained) -> Findings:
    half = [1.0, 0.0] * 10
    run = Trained(
        0, np.array([0.0, 0.5, 1.0]), np.array([0.3, 0.2, 0.1]), [(0, 0.25, 0.25), (3, 0.75, 0.75)], 90.0, 10**6
    )
    return Findings(
        experiment,
        starts={
            "few": {
                **{"base_parameters": 1000, "trained_parameters": 50, "examples": 8, "held_out": [2.0, 0.5]},
                **{"tokens": 2_000_000, "tokens_computed": 1_000_000, "processor_seconds": 60.0, "layouts": ["a"]},
            }
        },
        runs={"plain": [run, run._replace(seed=1, success=np.array([0.0, 0.0, 0.5]))], "small": [run]},
        fresh={
            ("base", "frozen-lake"): fresh([0.0] * 20),
            ("imitation", "frozen-lake"): fresh(half),
            ("trained", "frozen-lake"): fresh([1.0] * 20, half, unseen=[1] * 5 + [0] * 15),
            ("others", "frozen-lake"): fresh(half, [0.0] * 20, of=3),
        },
        jobs=tuple(jobs_of(experiment)),
        missing=tuple(job.name for job in jobs_of(experiment) if job.part == "baseline" or "large" in job.name),
    )


def test_figures_of_several_runs_are_over_runs_and_episodes(experiment):
    findings = found(experiment)
    trained = findings.fresh["trained", "frozen-lake"]
    assert trained.value.value == 0.75
    assert trained.value.low is not None
    assert trained.value.low < 0.6  # one run has 1.0, the other 0.5
    assert trained.worst == 0.5
    assert trained.on_unseen == (pytest.approx((1 + 0.6) / 2), 5)
    single = findings.fresh["imitation", "frozen-lake"].value
    assert single.value == 0.5
    assert single.low is not None
    assert 0.2 < single.low < 0.35


def test_differences_are_paired_as_their_sources_of_chance_ask(experiment):
    findings = found(experiment)
    known = {
        ("trained", "base"): (0.75, "2 runs of 20 episodes"),
        ("base", "trained"): (-0.75, "2 runs of 20 episodes"),
        ("trained", "others"): (0.5, "2 pairs of runs"),
        ("imitation", "base"): (0.5, "20 episodes"),
    }
    for (first, second), (value, of) in known.items():
        result = findings.difference(first, second, "frozen-lake")
        assert result is not None
        estimate, told = result
        assert (estimate.value, told) == (value, of)
        if told != "2 pairs of runs":  # both differ by 0.5, so Student's interval is that alone
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low < value < estimate.high
    assert findings.difference("trained", "equal", "frozen-lake") is None


def test_the_report_tells_figures_and_what_was_not_run(experiment):
    text = report_markdown(found(experiment), {"textbench": "9.9"}, command=COMMAND, notes=["A word."])
    assert "`some-model` (1,000 parameters)" in text
    assert "**Note.** A word." in text
    screen, main = (
        text.partition(f"\n## {title}\n")[2].partition("\n## ")[0] for title in ("What makes it read", "The lake")
    )
    row = next(line for line in screen.splitlines() if line.startswith("| small |"))
    assert "| near | relative True, grid False, size 3, iterations 1, task_sampling starts | 1 of 1 | 75.0% |" in row
    assert "25.0% to 75.0%" in row
    assert "Not run yet: large, alone." in screen
    row = next(line for line in main.splitlines() if line.startswith("| plain |"))
    assert "| 2 of 2 | 50.0% (25.0% to 75.0%) | +22.2% |" in row
    row = next(line for line in main.splitlines() if line.startswith("| trained |"))
    assert "unseen (5) 0.800; worst of 2 runs 0.500; 25.0% invalid" in row
    assert "1 runs not yet" in next(line for line in main.splitlines() if line.startswith("| others |"))
    assert "| trained minus base | frozen-lake | 0.750" in main
    assert "| better |" in main
    assert f"| TRL | `{COMMAND} --parts baseline` | not run yet |" in text
    assert "## TRL" not in text
    assert "| few | frozen-lake | 8 of planner | 50 | 2.000 to 0.500 | 2.00M (1.00M computed) | 1 min 00 s |" in text
    assert "| equal | frozen-lake |" not in text
