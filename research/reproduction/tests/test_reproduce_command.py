"""``textbench reproduce`` end to end on the miniature, its resume, and its messages."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout

import pytest

from benchmark.cli import main
from research.reproduction.jobs import ReproductionFolder
from research.reproduction.report import report_data
from research.reproduction.reproduction import Reproduction, read_reproduction
from research.reproduction.settings import Experiment


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--seeds none", "--seeds must be a whole number of at least 1, got 'none'"),
        ("--config nowhere.toml", "no recipe or TOML file named 'nowhere.toml'; there are: credit, "),
        ("--games snak", "no game in this recipe named 'snak'; did you mean 'snake"),
        ("--arms off", "no arm in this recipe named 'off'"),
        ("--dry-run --config full --parts main", "--parts is of the experiment with a pretrained model"),
        (
            "--dry-run --config stability --quick",
            "stability has no short form; those with one are full, credit, smollm2",
        ),
        ("--dry-run --config smollm2 --quick --arms x", "model takes --agent, --iterations, --parts, "),
        ("--dry-run --config smollm2 --quick --parts lke", "did you mean 'lake'"),
        ("--config credit-questions --games blackjak", "no game in this recipe named 'blackjak'; did you mean 'bla"),
        ("--config credit-questions --ship here", "of the questions of credit takes --games, --seeds"),
        ("--config credit-questions --arms plain", "--arms is of a reproduction"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments, message, capsys):
    assert main(["reproduce", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_report_of_an_empty_folder_is_honest(tmp_path, capsys):
    out = tmp_path / "out"
    command = ["reproduce", "--config", "miniature", "--out", str(out), "--report"]
    assert main(command) == 2
    assert f"there is no {out} to report on" in capsys.readouterr().err
    out.mkdir()
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert printed.count("NOT TESTED") == 4
    assert "not complete: 11 jobs have no result" in printed
    assert "This reproduction is not complete" in (out / "report.md").read_text()
    assert main(["reproduce", "--config", "miniature", "--seeds", "2", "--out", str(out), "--report"]) == 1
    assert "not complete: 16 jobs have no result" in capsys.readouterr().out
    assert main(["reproduce", "--config", "miniature", "--out", str(out), "--report"]) == 2
    assert "was made with seeds = 2, now it is 1" in capsys.readouterr().err


COMMAND = [sys.executable, "-m", "benchmark.cli", "reproduce", "--config", "miniature", "--jobs", "2"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A miniature that nothing stopped: its folder, and what the command said."""
    out = tmp_path_factory.mktemp("reproduce") / "whole"
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as told:
        assert main(["reproduce", "--config", "miniature", "--jobs", "1", "--out", str(out), "--json"]) == 0
    return out, printed.getvalue(), told.getvalue()


@pytest.mark.slow
def test_a_miniature_ends_in_a_report(whole):
    out, printed, told = whole
    report = json.loads(printed)
    assert "11 of 11 jobs to do; this will take about" in told
    assert report["missing"] == []
    assert len(report["claims"]) == 4
    for name in ("report.md", "report.json", "bars.svg"):
        assert (out / name).exists(), name


@pytest.mark.nightly
def test_ctrl_c_and_kill_at_any_moment_lose_nothing(whole, tmp_path):
    """The whole command, stopped politely twice and killed once, ends where the unstopped one did."""
    out = tmp_path / "stopped"
    stops = [
        (signal.SIGINT, "pretrain/small/result.json"),  # while runs train and the large base is made
        (signal.SIGKILL, "train/frozen-lake/aaw/0/result.json"),
        (signal.SIGTERM, "play/train/frozen-lake/aaw/0/result.json"),
    ]
    for number, (stop, moment) in enumerate(stops):
        process = subprocess.Popen(
            [*COMMAND, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 120
        while not (out / moment).exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, f"over before stop {number}: {process.communicate()}"
        assert (out / moment).exists()
        os.kill(process.pid, stop)
        _, error = process.communicate(timeout=90)
        if stop != signal.SIGKILL:
            assert process.returncode == 130
            assert f"--out {out}" in error
            assert "Traceback" not in error
    done = subprocess.run([*COMMAND, "--out", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = subprocess.run([*COMMAND, "--out", str(out)], capture_output=True, text=True, check=True)
    assert "all 11 jobs are done already" in again.stderr
    experiment = Experiment.read("miniature")
    one, two = (report_of(read_reproduction(experiment, ReproductionFolder(path))) for path in (whole[0], out))
    assert one == two


def report_of(results: Reproduction) -> object:
    data = report_data(results, Experiment.read("miniature"), {})
    del data["seconds"]
    for run in data["runs"]:
        del run["training_seconds"]
    return data
