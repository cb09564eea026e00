"""The report's text and data on made-up results, and its pictures."""

from pathlib import Path

import numpy as np
import pytest

from research.reproduction.report import arm_summary, claims_of, report_markdown
from research.reproduction.reproduction import Played, Reproduction, Run
from research.reproduction.settings import Experiment

GOLDEN = Path(__file__).with_name("report.md")
FACTS = {"textbench": "0.0, commit 0123456789ab", "Python": "3.11"}


def played(successes: int, invalid: int = 0) -> Played:
    returns = np.zeros(20)
    returns[:successes] = 1.0
    return Played(returns, returns, np.full(20, 5.0), np.array([invalid] + [0] * 19, dtype=float))


def results() -> Reproduction:
    scenarios = ("frozen-lake", "frozen-lake-slippery")
    runs = [
        Run(
            "frozen-lake",
            arm,
            0,
            np.array([0.0, 1.0, 2.0]),
            dict.fromkeys(scenarios, np.array([0.25, 1.0, last])),
            dict.fromkeys(scenarios, played(18)),
            12.5,
            1_234_567 if arm == "aaw" else None,
        )
        for arm, last in (("aaw", 0.75), ("uniform", 0.5))
    ]
    control = {
        **{"scenario": "frozen-lake", "episodes": 4, "decisions": 20, "returned": 0.5, "returned_shuffled": 0.125},
        **{"agreement_again": 0.9, "agreement_shuffled": 0.4},
        **{"truth": 0.95, "unreadable": 0.0, "truth_shuffled": float("nan")},
    }
    return Reproduction(
        runs=tuple(runs),
        agents={
            "small": dict.fromkeys(scenarios, played(4, invalid=3)),
            "large": dict.fromkeys(scenarios, played(10)),
            "random": dict.fromkeys(scenarios, played(1)),
        },
        parameters={"small": 1000, "large": 20_000},
        controls=({"agent": "small", **control}, {"agent": "train/frozen-lake/aaw/0", **control}),
        missing=("control/train/frozen-lake/aaw/0",),
        seconds={"pretrain/small": 70.0, "train/frozen-lake/aaw/0": 60.0},
        bases={
            "small": {
                "parameters": 1000,
                "seconds": 70.0,
                "recipe": {"steps": 500, "batch_size": 32},
                "losses": [3.0, 0.5, 0.25, 0.25, 0.25, 0.3],
            },
            "large": {
                "parameters": 20_000,
                "seconds": 1.0,
                "source": "tiny",
                "recipe": {"steps": 10, "batch_size": 8},
                "losses": [0.125],
            },
        },
        code=("0.0, commit ba98765432ff",),
    )


@pytest.fixture
def experiment():
    return Experiment.read("miniature")


def test_markdown_is_the_golden_one(experiment):
    text = report_markdown(
        results(), experiment, FACTS, plots=[("bars.svg", "bars")], notes=["Cut short for this test."]
    )
    assert text == GOLDEN.read_text(encoding="utf-8"), "if the change is meant: write the new text to report.md"


@pytest.mark.parametrize("first", ["aaw", "uniform"])
def test_the_claim_about_sampling_is_aaws_wherever_it_stands(experiment, first):
    arms = dict(sorted(experiment.arms.items(), key=lambda arm: arm[0] != first))
    (finding,) = claims_of(results(), experiment.model_copy(update={"arms": arms}))[1].findings
    assert (finding.about, finding.estimate.value) == (
        "mean of the training curve on frozen-lake: aaw minus uniform",
        pytest.approx(0.25 / 3),
    )


def test_fall_back_is_measured_from_a_runs_own_best():
    summary = arm_summary(results(), "frozen-lake", "uniform")
    assert summary is not None
    assert (summary["first"], summary["last"], summary["fallback"]) == (0.25, 0.5, 0.5)
    assert arm_summary(results(), "snake", "aaw") is None
