"""The curve of doses and the effects of factors in a study's report, from runs written down by hand."""

from dataclasses import replace

import numpy as np
import pytest

from research.credit.arms import Dose, at_best, curve_table, curves_of, dose_of, effects, standings
from research.credit.findings import Findings, Run
from research.credit.plots import draw_plots
from research.credit.report import report_data, report_markdown
from research.credit.settings import Study

GAME = "sliding-near"
SEEDS = range(6)


@pytest.fixture(scope="module")
def study():
    return Study.read("credit-dose", {"seeds": len(SEEDS)})


def run(seed, learning, ends=None):
    points = np.array([0.1, learning, learning])
    return Run(seed, 1e-3, np.arange(3.0), points, 2, 10, 20, 1.0, ends or {})


def found_of(study, runs, measured):
    empty = {"stages": {}, "bases": {}, "drawn": {}, "thinking": {}, "tuned": {}}
    return Findings(study=study, measured=measured, runs=runs, missing=(), seconds={}, code=(), **empty)


def findings(study: Study, **methods: float) -> Findings:
    """Learning is the share itself, with a seed's own luck; methods' correlation is 0.5."""
    luck = {seed: 0.01 * seed for seed in SEEDS}
    learning = {arm: dose.share for arm, settings in study.arms.items() if (dose := dose_of(settings)) is not None}
    runs = {(GAME, arm): [run(s, mean + luck[s]) for s in SEEDS] for arm, mean in learning.items()}
    runs |= {(GAME, arm): [run(s, mean + 0.05 - luck[s]) for s in SEEDS] for arm, mean in methods.items()}
    told = {"extra_tokens": 0, "seconds": 1.0, "gradient_cosine": {"value": 0.5}, "sign_agreement": {"value": 0.5}}
    measured = [{"name": name, "correlation": {"value": 0.5}, **told} for name in methods]
    document = {"methods": measured, "skipped": {}, "truth": {"states": 7, "expected_return": 0.2}}
    return found_of(study, runs, {(GAME, 0, stage): document for stage in ("base", "end")})


def test_every_kind_of_noise_has_a_curve_from_nothing_to_the_truth(study):
    assert dose_of(study.arms["episode-025"]) == Dose(0.25, "episode")
    curves = curves_of(findings(study), GAME)
    assert list(curves) == ["step", "episode", "action"]
    assert list(curves["episode"]) == [0.0, 0.0625, 0.125, 0.25, 0.5, 0.75, 1.0]
    assert curves["step"][0.25][2] == pytest.approx(0.27)


def test_a_method_that_learns_more_than_its_correlation_says_is_told_apart(study):
    rows = {row.arm: row for row in standings(findings(study, rtg=0.5, g2po=0.7))}
    assert list(rows) == ["rtg", "g2po"]
    assert rows["rtg"].predicted == pytest.approx(0.525)
    assert rows["rtg"].difference.value == pytest.approx(0)
    assert rows["g2po"].difference.value == pytest.approx(0.2)
    assert rows["g2po"].p_holm < 0.01
    found, weak = findings(study, rtg=0.5), {"methods": [{"name": "rtg", "correlation": {"value": 0.0}}], "weak": True}
    (row,) = standings(replace(found, measured={**found.measured, (GAME, 0, "middle"): weak}))
    assert row.correlation == 0.5


@pytest.mark.slow
def test_the_report_and_its_pictures_have_the_curve_also_of_a_game_with_a_single_run(study, tmp_path):
    found = findings(study, rtg=0.5)
    data = report_data(found, {})
    assert data["doses"][GAME]["action"]["0.5"] == pytest.approx([0.5 + 0.01 * seed for seed in SEEDS])
    text = report_markdown(found, {"textbench": "1"})
    assert "## Learning by the dose of true credit" in text
    assert "this design can't tell" not in text
    pytest.importorskip("matplotlib")
    one = {("frozen-lake", arm): runs[:1] for (_, arm), runs in found.runs.items()}
    both = replace(found, measured={}, runs={**found.runs, **one})
    assert [name for name, _ in draw_plots(both, tmp_path)] == ["dose.svg", "curves.svg"]
    assert "frozen-lake" in curve_table(both)


LAKE = "frozen-lake"
FIVE = range(5)
WORTH = {"aaw": 0.5, "largest": 0.4, "m16": 0.0, "m64": 0.1, "5e-4": -0.1, "4.5e-3": 0.0}


@pytest.fixture(scope="module")
def draws():
    return Study.read("credit-draws", {"seeds": len(FIVE)})


def crossed(draws: Study, together: float = 0.0) -> Findings:
    """Levels add up, with a seed's own luck; ``largest`` gains ``together`` more where 64 are drawn."""
    rng, runs = np.random.default_rng(0), {}
    for arm, cell in draws.crossed.items():
        worth = sum(WORTH.get(level, 0.0) for level in cell.values())
        worth += together * (cell["draw"] == "largest" and cell["drawn"] == "m64")
        values = [worth + 0.01 * seed + 0.001 * rng.standard_normal() for seed in FIVE]
        ends = dict.fromkeys(draws.ends_of(LAKE), 0.2)
        runs[LAKE, arm] = [run(*each, ends) for each in enumerate(values)]
    return found_of(draws, runs, {})


def test_main_effects_are_what_a_level_adds(draws):
    rows = {(row.factor, row.level): row for row in effects(crossed(draws)) if row.figure == "learning"}
    assert len(rows) == 6 + 4 + 3 + 2
    assert rows["draw", "aaw"].minus_first.value == 0
    assert rows["draw", "largest"].minus_first.value == pytest.approx(-0.1, abs=2e-3)
    assert rows["drawn", "m64"].minus_first.value == pytest.approx(0.1, abs=2e-3)
    assert rows["draw", "largest"].p_holm < 1e-4 < 0.05 < rows["gradient", "equal"].p_holm
    assert {row.seeds for row in rows.values()} == {5}
    rows = [row for row in effects(crossed(draws)) if row.figure == "frozen-lake-big"]  # nothing differs there
    assert {row.p_holm for row in rows} == {1.0}
    text = report_markdown(crossed(draws), {})
    for part in ("## What every factor does", "### Draw within rate", "### Draw, each at its best rate"):
        assert part in text
    assert len(report_data(crossed(draws), {})["effects"]) == 3 * 15


def test_a_seed_that_a_combination_lacks_counts_for_none(draws):
    found, arm = crossed(draws), next(iter(draws.crossed))
    cut = replace(found, runs={**found.runs, (LAKE, arm): found.runs[LAKE, arm][:3]})
    assert {row.seeds for row in effects(cut)} == {3}
    assert effects(replace(found, runs={})) == []
    # and levels that ``--arms`` left no arm of have no effect
    some = Study.read("credit-draws", {"arms": ["all", "largest-m16-5e-4-raw", "largest-m64-5e-4-raw"]})
    rows = [row for row in effects(crossed(some)) if row.figure == "learning"]
    assert [row.level for row in rows] == ["largest", "m16", "m64", "5e-4", "raw"]
    assert rows[2].minus_first.value == pytest.approx(0.1, abs=2e-3)


def test_an_effect_within_the_levels_of_another_factor(draws):
    rows = {
        (row.within, row.level): row
        for row in effects(crossed(draws, together=0.3), "draw", "drawn")
        if row.figure == "learning"
    }
    assert rows["drawn m16", "largest"].minus_first.value == pytest.approx(-0.1, abs=2e-3)
    assert rows["drawn m64", "largest"].minus_first.value == pytest.approx(0.2, abs=2e-3)
    # and each level at its own best one of the other
    rows = {row.level: row for row in at_best(crossed(draws, together=0.3), "draw", "drawn")}
    assert len(rows) == 6
    assert {rows["aaw"].within, rows["largest"].within} == {"drawn m64"}
    assert rows["largest"].minus_first.value == pytest.approx(0.2, abs=2e-3)
    assert rows["aaw"].is_first
    assert at_best(replace(crossed(draws), runs={}), "draw", "rate") == []
