"""``textbench reproduce --config credit``: end to end on the miniature, and its messages."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from benchmark.cli import main
from research.jobs.report import stored_report
from research.jobs.tests.here import jobs_here

pytestmark = pytest.mark.filterwarnings("ignore:Data has no positive values")  # a figure of what learnt nothing
CREDIT = ["reproduce", "--config", "credit-miniature"]


TAKES = {"credit-miniature": "the study of credit takes --arms, --games, --seeds"}
TAKES["credit-questions"] = "the questions of credit takes --games, --seeds"


@pytest.mark.parametrize(
    ("recipe", "arguments", "message"),
    [
        *[
            (name, ["--games", "blackjak"], "no game in this recipe named 'blackjak'; did you mean 'bla")
            for name in TAKES
        ],
        *[(name, ["--iterations", "3"], f"a recipe of {TAKES[name]}") for name in TAKES],
        *[(name, ["--ship", "here"], f"a recipe of {TAKES[name]}") for name in TAKES],
        ("credit-miniature", ["--arms", "rtgg"], "no arm in this recipe named 'rtgg'; did you mean 'rtg'"),
        ("credit-questions", ["--arms", "plain"], "--arms is of a reproduction"),
    ],
)
def test_wrong_usage_is_one_sentence(recipe, arguments, message, capsys):
    assert main(["reproduce", "--config", recipe, *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_dry_run_says_what_would_be_done(tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*CREDIT, "--out", str(out), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "4 jobs base" in printed
    assert "4 jobs train" in printed
    assert "nothing was done" in printed
    assert not out.exists()


def test_a_pretrained_model_takes_minutes_a_batch(tmp_path, capsys):
    """The published run took 2,166 seconds of the processor; at the pace of the tiny model it would be 168."""
    report = stored_report(Path("research/credit/data/draws/pretrained-start.json.gz"))
    out = str(tmp_path / "out")
    assert main(["reproduce", "--config", "credit-pretrained", "--out", out, "--jobs", "1", "--dry-run", "--json"]) == 0
    assert report["seconds"] / 2 < json.loads(capsys.readouterr().out)["seconds"] < report["seconds"] * 2


@pytest.mark.parametrize(
    ("recipe", "jobs", "said"),
    [
        ("credit-miniature", 41, "Nothing was measured yet."),
        ("credit-questions", 30, "**This study is not complete.**"),
    ],
)
def test_the_report_of_an_empty_folder_is_honest(recipe, jobs, said, tmp_path, capsys):
    (out := tmp_path / "out").mkdir()
    assert main(["reproduce", "--config", recipe, "--out", str(out), "--report"]) == 1
    assert f"not complete: {jobs} jobs have no result" in capsys.readouterr().out
    assert said in (out / "report.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    pytest.importorskip("torch")
    out = tmp_path_factory.mktemp("study") / "whole"
    with jobs_here(), redirect_stdout(io.StringIO()) as told:
        assert main([*CREDIT, "--jobs", "1", "--out", str(out), "--json"]) == 0
    assert json.loads(told.getvalue())["missing"] == []
    return out


@pytest.mark.slow
def test_a_miniature_ends_in_a_report(whole):
    for name in ("report.md", "report.json", "fidelity.svg", "draws.svg", "curves.svg"):
        assert (whole / name).exists(), name
    assert "Which credit is good" in (whole / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_runs_of_a_game_have_bases_and_starts_of_their_own(whole):
    first, second = (json.loads((whole / f"measure/blackjack/{run}/base/result.json").read_text()) for run in (0, 1))
    assert first["setting"] == second["setting"] | {"seed": 0}
    assert first["truth"]["expected_return"] != second["truth"]["expected_return"]
    bases = [json.loads((whole / f"base/blackjack/{run}/result.json").read_text()) for run in (0, 1)]
    assert bases[0]["losses"] != bases[1]["losses"]
