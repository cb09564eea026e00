"""Crossed factors: main effects over seeds, from runs written down by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from research.credit.factors import at_best, effects, effects_table
from research.credit.findings import Findings, Run
from research.credit.report import report_data, report_markdown
from research.credit.settings import Study

GAME = "frozen-lake"
SEEDS = range(5)
WORTH = {"aaw": 0.5, "largest": 0.4, "m16": 0.0, "m64": 0.1, "5e-4": -0.1, "4.5e-3": 0.0}


@pytest.fixture(scope="module")
def study():
    return Study.read("credit-draws", {"seeds": len(SEEDS)})


def findings(study: Study, together: float = 0.0) -> Findings:
    """Levels add up, with a seed's own luck; ``largest`` gains ``together`` more where 64 are drawn."""
    rng, runs = np.random.default_rng(0), {}
    for arm, cell in study.crossed.items():
        worth = sum(WORTH.get(level, 0.0) for level in cell.values())
        worth += together * (cell["draw"] == "largest" and cell["drawn"] == "m64")
        values = [worth + 0.01 * seed + 0.001 * rng.standard_normal() for seed in SEEDS]
        ends = dict.fromkeys(study.ends_of(GAME), 0.2)
        runs[GAME, arm] = [
            Run(seed, 1e-3, np.arange(3.0), np.array([0.1, value, value]), 2, 10, 20, 1.0, ends)
            for seed, value in zip(SEEDS, values, strict=True)
        ]
    empty: dict[str, Any] = {"stages": {}, "bases": {}, "measured": {}, "drawn": {}, "thinking": {}, "tuned": {}}
    return Findings(study=study, runs=runs, missing=(), seconds={}, code=(), **empty)


def test_main_effects_are_what_a_level_adds(study):
    rows = {(row.factor, row.level): row for row in effects(findings(study)) if row.figure == "learning"}
    assert len(rows) == 6 + 4 + 3 + 2
    assert rows["draw", "aaw"].minus_first.value == 0
    assert rows["draw", "largest"].minus_first.value == pytest.approx(-0.1, abs=2e-3)
    assert rows["drawn", "m64"].minus_first.value == pytest.approx(0.1, abs=2e-3)
    assert rows["drawn", "m8"].minus_first.value == pytest.approx(0, abs=2e-3)
    assert rows["rate", "1.5e-3"].minus_first.value == pytest.approx(0.1, abs=2e-3)
    assert rows["gradient", "equal"].minus_first.value == pytest.approx(0, abs=2e-3)
    assert rows["draw", "largest"].p_holm < 1e-4 < 0.05 < rows["gradient", "equal"].p_holm
    assert {row.seeds for row in rows.values()} == {5}


def test_a_seed_that_a_combination_lacks_counts_for_none(study):
    found = findings(study)
    arm = next(iter(study.crossed))
    cut = replace(found, runs={**found.runs, (GAME, arm): found.runs[GAME, arm][:3]})
    assert {row.seeds for row in effects(cut)} == {3}
    assert effects(replace(found, runs={})) == []


def test_levels_that_no_arm_is_left_of_have_no_effect():
    """As after ``--arms``."""
    some = Study.read("credit-draws", {"arms": ["all", "largest-m16-5e-4-raw", "largest-m64-5e-4-raw"]})
    rows = [row for row in effects(findings(some)) if row.figure == "learning"]
    assert [row.level for row in rows] == ["largest", "m16", "m64", "5e-4", "raw"]
    assert rows[2].minus_first.value == pytest.approx(0.1, abs=2e-3)


def test_an_effect_within_the_levels_of_another_factor(study):
    rows = {
        (row.within, row.level): row
        for row in effects(findings(study, together=0.3), "draw", "drawn")
        if row.figure == "learning"
    }
    assert rows["drawn m16", "largest"].minus_first.value == pytest.approx(-0.1, abs=2e-3)
    assert rows["drawn m64", "largest"].minus_first.value == pytest.approx(0.2, abs=2e-3)


def test_each_level_is_read_at_its_own_best_level_of_another(study):
    rows = {row.level: row for row in at_best(findings(study, together=0.3), "draw", "drawn")}
    assert len(rows) == 6
    assert {rows["aaw"].within, rows["largest"].within} == {"drawn m64"}
    assert rows["largest"].minus_first.value == pytest.approx(0.2, abs=2e-3)
    assert rows["aaw"].is_first
    by_rate = at_best(findings(study), "draw", "rate")
    assert {row.within for row in by_rate} <= {"rate 1.5e-3", "rate 4.5e-3"}  # which are worth the same
    assert at_best(replace(findings(study), runs={}), "draw", "rate") == []


def test_where_nothing_differs_nothing_is_told_apart(study):
    rows = [row for row in effects(findings(study)) if row.figure == "frozen-lake-big"]
    assert {row.p_holm for row in rows} == {1.0}
    assert "0.200" in effects_table(rows)


def test_the_report_has_the_effects(study):
    found = findings(study)
    text = report_markdown(found, {})
    assert "## What every factor does" in text
    assert "### Draw within rate" in text
    assert "### Draw, each at its best rate" in text
    assert "## Tuning" not in text
    assert len(report_data(found, {})["effects"]) == 3 * 15
