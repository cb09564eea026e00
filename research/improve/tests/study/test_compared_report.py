"""What the report says of results that are written by hand: a difference where there is one, else none."""

from pathlib import Path

import numpy as np
import pytest

from research.improve.study.report import Findings, differences, draw_curve, read_findings, report_data, report_markdown
from research.improve.study.settings import ComparedFolder, Comparison, jobs_of


def found(tmp_path: Path, better: dict[str, float], seeds: int = 5) -> Findings:
    """Results of jobs, written by hand: regrets of 0.2 less what a method is better, with noise of 0.01."""
    study = Comparison.read("improvers-miniature", {"seeds": seeds, "budgets": (3_000, 6_000)})
    folder, rng = ComparedFolder(tmp_path), np.random.default_rng(0)
    for job in jobs_of(study):
        regret = 0.2 - better.get(job.method, 0.0) + 0.01 * rng.standard_normal()
        scored = {"return": 0.3, "regret": regret, "tokens": 50.0, "invalid": 0.0, "decisions": 5.0}
        worn = {"facts": {"textbench": "by hand"}, "seconds": 1.0, "processor_seconds": 1.0}
        learnt = {"rate": 1e-3, "played": job.budget // 2, "updated": job.budget // 4, "passes": 1, "rows": 3}
        twin = scored | {"regret": 0.2 + 0.01 * rng.standard_normal()}
        folder.write_result(job.name, {**worn, "parameters": 7, **learnt, "game": scored, "twin": twin})
    return read_findings(study, folder)


def test_where_nothing_differs_it_says_that_nothing_can_be_said(tmp_path):
    findings = found(tmp_path, {})
    assert min(row.p_holm for row in differences(findings)) > 0.05
    text = report_markdown(findings, {"textbench": "by hand"})
    assert "**frozen-lake**: nothing can be said: no difference is left after Holm's correction." in text
    assert "loses less" not in text
    alone = report_markdown(found(tmp_path / "one", {"imitate": 0.15}, seeds=1), {})
    assert "nothing can be said" in alone


def test_one_that_loses_less_is_named_with_what_it_loses_less_than(tmp_path):
    findings = found(tmp_path, {"imitate": 0.15})
    text = report_markdown(findings, {})
    for budget in ("3,000", "6,000"):
        assert f"`imitate {budget}` loses less than `base`;" in text
        assert f"`imitate {budget}` loses less than `msgrpo {budget}`" in text
    assert "in the twin" not in text.split("## What to use when")[1].split("##")[0]
    assert "`preferences" not in text.split("## What to use when")[1].split("##")[0]
    assert "`imitate` spent 75% of 3,000" in text


def test_corrections_are_over_all_differences_of_a_place(tmp_path):
    findings = found(tmp_path, {"imitate": 0.1})
    rows = [row for row in differences(findings) if row.place == "game"]
    methods, budgets, players = 4, 2, 2
    assert len(rows) == budgets * (methods + methods - 1) + 2 * players
    least = min(rows, key=lambda row: row.p_value)
    assert least.p_holm == pytest.approx(len(rows) * least.p_value)


def test_the_data_has_every_run_and_what_is_missing(tmp_path):
    findings = found(tmp_path, {})
    (tmp_path / "learn/frozen-lake/offline/3000/1/result.json").unlink()
    again = read_findings(findings.study, ComparedFolder(tmp_path))
    data = report_data(again, {})
    assert data["missing"] == ["learn/frozen-lake/offline/3000/1"]
    assert len(data["runs"]) == 5 * (1 + 2 * 4 + 2) - 1
    assert {run["scenario"] for run in data["runs"]} == {"frozen-lake"}
    assert Comparison.model_validate(data["settings"]) == findings.study
    assert "This comparison is not complete" in report_markdown(again, {})


@pytest.mark.slow
def test_the_curve_of_equal_results_is_equal(tmp_path):
    pytest.importorskip("matplotlib")
    findings = found(tmp_path, {})
    ((name, _),) = draw_curve(findings, tmp_path)
    first = (tmp_path / name).read_bytes()
    draw_curve(findings, tmp_path)
    assert (tmp_path / name).read_bytes() == first
