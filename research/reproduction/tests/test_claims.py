"""The claims on made-up results, which can hold, fail, be undecided or untested, and the report of them."""

from pathlib import Path

import numpy as np
import pytest

from agents.common.intervals import Estimate
from research.reproduction import claims
from research.reproduction.claims import Verdict, combine, judge, verdict_of
from research.reproduction.report import arm_summary, claims_of, report_markdown
from research.reproduction.reproduction import Played, Reproduction, Run
from research.reproduction.settings import Experiment

EPISODES = 200
SCENARIOS = ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")


def played(mean: float, seed: int = 0, episodes: int = EPISODES) -> Played:
    """Episodes of 0 and 1 with exactly this mean, in an order of their own."""
    returns = np.zeros(episodes)
    returns[: round(mean * episodes)] = 1.0
    np.random.default_rng(seed).shuffle(returns)
    return Played(returns, returns, np.full(episodes, 5.0), np.zeros(episodes))


def run(game: str, arm: str, seed: int, curve: list[float], final: dict[str, float]) -> Run:
    return Run(
        game,
        arm,
        seed,
        np.arange(len(curve), dtype=float),
        dict.fromkeys(SCENARIOS, np.array(curve)),
        {name: played(mean, 10 + seed) for name, mean in final.items()},
        60.0,
    )


def made_up(trained: float = 0.9, large: float = 0.5, aaw: float = 0.7, noise: float = 0.0) -> Reproduction:
    runs, small = [], 0.3
    for game in ("frozen-lake", "snake"):
        for arm, level in (("aaw", aaw), ("uniform", 0.5)):
            for seed in range(5):
                curve = [small, level + noise * (seed - 2) * (1 if arm == "aaw" else -1)]
                runs.append(run(game, arm, seed, curve, dict.fromkeys(SCENARIOS, trained)))
    agents = {
        name: {scenario: played(mean, 1) for scenario in SCENARIOS}
        for name, mean in (("small", small), ("large", large))
    }
    return Reproduction(runs=tuple(runs), agents=agents, parameters={"small": 100, "large": 2500})


def judged(results: Reproduction) -> dict[str, claims.Claim]:
    return {
        claim.name: claim for claim in judge(results, ("frozen-lake", "snake"), "aaw", [("aaw", "uniform")], SCENARIOS)
    }


def test_all_claims_hold():
    found = judged(made_up())
    assert {name: claim.verdict for name, claim in found.items()} == dict.fromkeys(found, Verdict.HOLDS)
    headline = found["small beats large"].findings[0]
    assert headline.estimate.value == pytest.approx(1.8)
    assert headline.estimate.low is not None
    assert headline.estimate.low > 1.5
    assert "25 times" in headline.about
    assert headline.samples == "5 runs of 200 episodes"
    assert [len(claim.findings) for claim in found.values()] == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("large", "verdict"),
    [(0.6, Verdict.UNDECIDED), (0.8, Verdict.FAILS), (0.0, Verdict.UNDECIDED)],
)
def test_headline_needs_half_as_much_again(large, verdict):
    assert judged(made_up(large=large))["small beats large"].verdict is verdict


@pytest.mark.parametrize(
    ("aaw", "noise", "verdict"), [(0.7, 0.0, Verdict.HOLDS), (0.3, 0.0, Verdict.FAILS), (0.52, 0.1, Verdict.UNDECIDED)]
)
def test_sampling_is_judged_over_seeds(aaw, noise, verdict):
    claim = judged(made_up(aaw=aaw, noise=noise))["AAW improves training"]
    assert claim.verdict is verdict
    assert claim.findings[0].estimate.value == pytest.approx((aaw - 0.5) / 2)


def test_only_common_seeds_are_paired():
    results = made_up()
    kept = tuple(one for one in results.runs if one.arm == "aaw" or one.seed in (1, 3))
    claim = judged(Reproduction(kept, results.agents, results.parameters))["AAW improves training"]
    assert [finding.samples for finding in claim.findings] == ["2 pairs of runs"] * 2


def test_no_improvement_fails_and_no_runs_leave_untested():
    found = judged(made_up(trained=0.2))
    assert found["returns improve"].verdict is Verdict.FAILS
    assert found["carries over"].verdict is Verdict.FAILS
    assert {claim.verdict for claim in judged(Reproduction()).values()} == {Verdict.UNTESTED}


def test_one_run_has_no_interval_and_decides_nothing():
    results = made_up()
    alone = Reproduction(tuple(one for one in results.runs if one.seed == 0), results.agents, results.parameters)
    found = judged(alone)
    assert found["small beats large"].findings[0].estimate.low is None
    assert {claim.verdict for claim in found.values()} == {Verdict.UNDECIDED}


def test_verdicts():
    assert verdict_of(Estimate(1.0, 0.5, 1.5), 0.0) is Verdict.HOLDS
    assert verdict_of(Estimate(-1.0, -1.5, 0.0), 0.0) is Verdict.FAILS
    assert verdict_of(Estimate(1.0, -0.5, 1.5), 0.0) is Verdict.UNDECIDED
    assert verdict_of(Estimate(1.0, None, None), 0.0) is Verdict.UNDECIDED
    assert combine([Verdict.HOLDS, Verdict.UNDECIDED]) is Verdict.UNDECIDED
    assert combine([Verdict.HOLDS, Verdict.FAILS]) is Verdict.FAILS
    assert combine([]) is Verdict.UNTESTED


GOLDEN = Path(__file__).with_name("report.md")
FACTS = {"textbench": "0.0, commit 0123456789ab", "Python": "3.11"}


def won(successes: int, invalid: int = 0) -> Played:
    returns = np.zeros(20)
    returns[:successes] = 1.0
    return Played(returns, returns, np.full(20, 5.0), np.array([invalid] + [0] * 19, dtype=float))


def with_controls() -> Reproduction:
    scenarios = ("frozen-lake", "frozen-lake-slippery")
    runs = [
        Run(
            "frozen-lake",
            arm,
            0,
            np.array([0.0, 1.0, 2.0]),
            dict.fromkeys(scenarios, np.array([0.25, 1.0, last])),
            dict.fromkeys(scenarios, won(18)),
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
            "small": dict.fromkeys(scenarios, won(4, invalid=3)),
            "large": dict.fromkeys(scenarios, won(10)),
            "random": dict.fromkeys(scenarios, won(1)),
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
        with_controls(), experiment, FACTS, plots=[("bars.svg", "bars")], notes=["Cut short for this test."]
    )
    assert text == GOLDEN.read_text(encoding="utf-8"), "if the change is meant: write the new text to report.md"


@pytest.mark.parametrize("first", ["aaw", "uniform"])
def test_the_claim_about_sampling_is_aaws_wherever_it_stands(experiment, first):
    arms = dict(sorted(experiment.arms.items(), key=lambda arm: arm[0] != first))
    (finding,) = claims_of(with_controls(), experiment.model_copy(update={"arms": arms}))[1].findings
    assert (finding.about, finding.estimate.value) == (
        "mean of the training curve on frozen-lake: aaw minus uniform",
        pytest.approx(0.25 / 3),
    )


def test_fall_back_is_measured_from_a_runs_own_best():
    summary = arm_summary(with_controls(), "frozen-lake", "uniform")
    assert summary is not None
    assert (summary["first"], summary["last"], summary["fallback"]) == (0.25, 0.5, 0.5)
    assert arm_summary(with_controls(), "snake", "aaw") is None
