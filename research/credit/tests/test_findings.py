"""The figures of a study's report, computed from job files that were written down by hand."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr, ttest_1samp

from agents.common.intervals import student
from benchmark.errors import UsageError
from research.credit.findings import (
    arms_on,
    by_game,
    over_cells,
    predictions,
    rank_correlation,
    read_findings,
    refused_of,
    told_apart,
)
from research.credit.report import report_data, report_markdown
from research.credit.settings import Study, StudyFolder
from research.credit.stored import recomputed
from research.credit.tables import draws_by_stage, recommendation, thinking_told_apart
from research.jobs.report import stored_report

FACTS = {"facts": {"textbench": "1.2.3, commit abc"}, "processor_seconds": 1.0, "seconds": 2.0}
# the learning of every run: msgrpo 0.2, 0.4 and rtg 0.5, 0.5, by seed
RETURNS = {"msgrpo": [[0.1, 0.1, 0.3], [0.1, 0.3, 0.5]], "rtg": [[0.1, 0.4, 0.6], [0.1, 0.5, 0.5]]}


def around(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.05, "high": value + 0.05}


def measurement(*methods: tuple[str, float, float], **skipped: str) -> dict[str, Any]:
    told = []
    for name, correlation, cosine in methods:
        others = {"sign_agreement": 0.5, "mean_correlation": 0.5, "gradient_cosine": cosine, "bias": 1.0}
        figures = {figure: around(value) for figure, value in {"correlation": correlation, **others}.items()}
        told.append({"name": name, **figures, "extra_tokens": 30.0, "seconds": 0.001})
    played = {"setting": {"groups": 2, "group_size": 4}, "episode_tokens": 3.75}
    return {**FACTS, "methods": told, "skipped": skipped, "truth": {"states": 7, "expected_return": 0.25}, **played}


def draw(rule: str, cosine: float, *, minus: float = 0.0) -> dict[str, Any]:
    told = {"cosine": around(cosine), "mean_cosine": around(cosine)}
    told |= {"minus_uniform": around(minus), "minus_nonzero": around(minus / 2)}
    return {"rule": rule, "m": 2, "reference": "exact", "drawn": 2, "tokens": 20.0, **told}


@pytest.fixture
def folder(tmp_path):
    made = StudyFolder(tmp_path, ("msgrpo", "rtg"))
    for stage, (plain, steps) in {"base": (0.4, 0.6), "middle": (0.2, 0.6)}.items():
        made.write_result(
            f"measure/blackjack/0/{stage}",
            measurement(("msgrpo", plain, 0.9), ("rtg", steps, 0.8), ("oracle", 1.0, 0.95)),
        )
    made.write_result(
        "measure/kuhn-poker/0/base",
        measurement(("msgrpo", 0.3, 0.7), ("oracle", 0.8, 0.9), rtg="no steps"),
    )
    rules = [draw("uniform", 0.3), draw("off", 0.9), draw("unbiased", 0.5), draw("aaw", 0.7, minus=0.4)]
    document = {"name": "msgrpo", "without_signal": 0.25, "draws": rules}
    made.write_result("draws/blackjack/0/base", {**FACTS, "methods": [document]})
    for arm, returns in RETURNS.items():
        for rate, best in ((1e-3, 0.1), (1e-2, 0.9)):
            points = [[0, 0, 5.0], [800, 3, best]]  # the evaluation at the start doesn't count
            made.write_result(f"tune/blackjack/{arm}/{rate:g}", {**FACTS, "points": points})
        for seed, values in enumerate(returns):
            points = [[tokens, 0, value] for tokens, value in zip((0, 800, 1600), values, strict=True)]
            spent = {"training_seconds": 4.0, "rollout_tokens": 1200, "update_tokens": 400}
            result = {**FACTS, "rate": 1e-2, "points": points, "history": [{}, {}, {}], **spent}
            made.write_result(f"train/blackjack/{arm}/{seed}", result)
    return made


@pytest.fixture
def findings(folder):
    return read_findings(Study.read("credit-miniature"), folder)


def test_methods_are_compared_on_the_cells_that_both_have(findings):
    rows = {row.method: row for row in over_cells(findings, "correlation")}
    assert list(rows) == ["oracle", "rtg", "msgrpo"]
    assert refused_of(findings) == {"rtg": "no steps (kuhn-poker)"}
    assert (rows["rtg"].cells, rows["msgrpo"].cells) == (2, 3)
    assert rows["rtg"].mean == pytest.approx(0.6)
    assert rows["msgrpo"].mean == pytest.approx(0.3)
    # two stages of one game are one cluster: no interval, and no test
    assert rows["rtg"].minus_plain == (pytest.approx(0.3), None, None)
    assert rows["rtg"].p_value == 1.0
    # the oracle's differences: 0.6 and 0.8 in one game and 0.5 in the other, so 0.7 and 0.5 with sd 0.1414; Student's
    # 97.5% quantile for one degree of freedom is 12.706
    half = 12.7062 * 0.141421 / math.sqrt(2)
    assert rows["oracle"].minus_plain == pytest.approx((0.6, 0.6 - half, 0.6 + half), rel=1e-4)
    assert rows["oracle"].p_value == pytest.approx(ttest_1samp([0.7, 0.5], 0.0).pvalue)


def test_stages_runs_and_games_are_averaged_one_inside_the_other():
    values = {("a", 0, "base"): 1.0, ("a", 0, "end"): 0.0, ("a", 1, "base"): 0.9, ("b", 0, "end"): 0.2}
    assert by_game(values) == pytest.approx({"a": (0.5 + 0.9) / 2, "b": 0.2})


def test_cells_whose_oracle_is_mostly_noise_are_marked_and_in_no_mean(findings):
    weak = {cell: {**document, "weak": cell[0] == "kuhn-poker"} for cell, document in findings.measured.items()}
    rows = {row.method: row for row in over_cells(replace(findings, measured=weak), "correlation")}
    assert (rows["msgrpo"].cells, rows["msgrpo"].mean) == (2, pytest.approx(0.3))
    assert (rows["oracle"].cells, rows["oracle"].mean) == (2, pytest.approx(1.0))
    text = report_markdown(replace(findings, measured=weak), {"textbench": "1.2.3"})
    assert "mostly noise there: kuhn-poker 0 base." in text
    assert re.search(r"\| kuhn-poker \| 0 \| base \|.* 0\.900\* \|", text)


def games_with(gains: dict[str, Sequence[float]]) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Measurements of as many games as a method has gains over the plain one, in correlation and cosine alike."""
    count = len(next(iter(gains.values())))
    return {
        (f"game {i}", 0, "base"): measurement(
            ("msgrpo", 0.3, 0.3), *[(name, 0.3 + own[i], 0.3 + own[i]) for name, own in gains.items()]
        )
        for i in range(count)
    }


def test_only_what_holms_correction_leaves_is_named(findings):
    steady, shaky = [0.2, 0.21, 0.19, 0.2, 0.22, 0.2], [0.4, -0.1, 0.5, 0.0, 0.6, 0.1]
    measured = games_with({"rtg": steady, "vine": shaky, "gigpo": shaky[::-1]})
    found = replace(findings, measured=measured)
    apart = told_apart(found)
    raw = ttest_1samp(steady, 0.0).pvalue
    assert set(apart) == {(f, m) for f in ("correlation", "gradient_cosine") for m in ("rtg", "vine", "gigpo")}
    assert apart["correlation", "rtg"] == pytest.approx(6 * raw, rel=1e-3)
    assert min(apart["correlation", "vine"], apart["gradient_cosine", "gigpo"]) > 0.05
    said = recommendation(found)
    assert "more like it rtg (0.50); less none" in said
    assert "vine" not in said  # its mean is the highest
    assert "gigpo" not in said


def test_p_values_of_a_model_that_reasons_are_students(findings):
    values = np.array([0.2, 0.3, 0.1, 0.25])
    value, low, high = student(values)
    gain = {"rule": "aaw", "m": 2, "reference": "others", "minus_uniform": {"value": value, "low": low, "high": high}}
    document = {"methods": [{"name": "msgrpo", "batches": 4, "draws": [gain]}]}
    apart = thinking_told_apart(replace(findings, thinking={"frozen-lake": document}))
    assert apart["frozen-lake", 2] == pytest.approx((value, ttest_1samp(values, 0.0).pvalue))


REPORTS = sorted(Path("research/credit/data").rglob("*.json.gz"))


@pytest.mark.parametrize("file", REPORTS, ids=str)
def test_a_stored_report_is_what_its_measurements_give_today_or_says_that_it_can_not(file):
    """``python -m research.credit.stored FILE`` brings it up to date.

    Without the figures that runs end with, Holm's correction would be over a third of the tests."""
    report = stored_report(file)
    if file.parent.name in ("draws", "explore") and file.name == "report.json.gz":
        with pytest.raises(UsageError, match="its runs lack their figures"):
            recomputed(report)
    else:
        again = json.loads(json.dumps(recomputed(report), allow_nan=False))
        whole = (
            report.keys() - {"runs"} if file.parent.name == "data" else {"effects", "standings"}
        )  # runs have more now
        assert {name: again.get(name) for name in whole} == {name: report.get(name) for name in whole}


def test_gains_of_draws_have_games_as_clusters_and_are_corrected(findings):
    gains = {"a": 0.1, "b": 0.2, "c": 0.9}
    documents = {
        (game, run, stage): {"methods": [{"name": "msgrpo", "draws": [draw("aaw", 0.7, minus=own)]}]}
        for game, gain in gains.items()
        for run, own in ((0, gain - 0.3), (1, gain + 0.3))
        for stage in ("base", "end")
    }
    lines = draws_by_stage(replace(findings, drawn=documents)).splitlines()[2:]
    stage, m, games, mean, without, p = (cell.strip() for cell in lines[0].strip("|").split("|"))
    assert (stage, m, games, without) == ("base", "2", "3", "+0.150 (c)")
    assert mean.startswith("0.400 [-0.6")
    assert float(p) == pytest.approx(2 * ttest_1samp(list(gains.values()), 0.0).pvalue, abs=0.01)  # of two rows


def test_arms_are_paired_by_seed(findings):
    assert "train/blackjack/rtg/1" not in findings.missing
    assert {"base/blackjack/0", "measure/blackjack/0/end", "draws/kuhn-poker/1/end"} <= set(findings.missing)
    first, second = arms_on(findings, "blackjack")
    assert (first.arm, second.arm) == ("rtg", "msgrpo")
    assert first.learning.value == pytest.approx(0.5)
    assert second.learning.value == pytest.approx(0.3)
    # by seed 0.5 - 0.2 and 0.5 - 0.4
    half = 12.7062 * 0.141421 / math.sqrt(2)
    assert first.minus_plain == pytest.approx((0.2, 0.2 - half, 0.2 + half), rel=1e-4)
    assert first.last.value == pytest.approx(0.55)
    assert (first.tokens, first.rollout_share, first.iterations, first.seconds) == (1600, 0.75, 3, 4.0)
    assert findings.tuned["blackjack", "rtg"] == {1e-3: 0.1, 1e-2: 0.9}


def test_a_prediction_needs_three_arms_with_runs(findings):
    x, y = np.random.default_rng(0).integers(0, 4, (2, 9)).astype(float)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert predictions(findings) == []
    study = findings.study.model_copy(update={"arms": {**findings.study.arms, "late": {"credit": "oracle"}}})
    runs = {**findings.runs, ("blackjack", "late"): findings.runs["blackjack", "rtg"][:1]}
    more = replace(findings, study=study, runs=runs)
    (row,) = (row for row in predictions(more) if row.figure == "correlation")
    # figures 0.3, 0.6, 1.0 and learning 0.3, 0.5, 0.5: ranks 1 2 3 and 1 2.5 2.5
    assert row.spearman.value == pytest.approx(math.sqrt(3) / 2)
    assert row.arms == 3


def test_the_report_shows_these_figures(findings):
    text = report_markdown(findings, {"textbench": "1.2.3"}, notes=["Cut short."])
    for said in (
        "**Note.** Cut short.",
        "**This study is not complete.**",
        "| blackjack | rtg | 2 | 0.01 | 0.500 ",
        "| blackjack 0, base | 25% | 2 | 100% | 0.700 | 0.300 | 0.900 | 0.400 [0.350, 0.450] | 0.200 [0.150, 0.250]",
        "told apart from the plain method after Holm's correction over 1 differences: better none",
        "the oracle's cosine is 0.90 on kuhn-poker and 0.95 on blackjack.",
        "| rtg | 2 | 0.600 | 0.500 | 0.500 | 0.800",  # one game: no interval
        "| 1.0 | 1 ms |",  # fresh response tokens, 30 for the batch's 2 * 4 * 3.75
    ):
        assert said in text
    data = json.loads(json.dumps(report_data(findings, {}), allow_nan=False))
    assert data["arms"][0]["learning"]["value"] == pytest.approx(0.5)
    assert len(data["runs"]) == 4
