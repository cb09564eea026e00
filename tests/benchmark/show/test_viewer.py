"""What a person at a terminal sees: the live table, the keys of a replay, the page's address."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from rich.console import Console

from benchmark.play.progress import Lines, LiveTable, Meter, Silent, choose_display, summary_line
from benchmark.runs.plan import Matchup

ROOT = Path(__file__).parents[3]
pty = pytest.importorskip("pty")


def a_meter():
    totals = {Matchup("snake", ("a",)): 10, Matchup("frozen-lake", ("b",)): 10}
    meter = Meter(totals, {Matchup("snake", ("a",)): 4}, {"b": {"input": 1.0, "output": 2.0}}, {"b": [1000, 0]})
    meter.count_episode(Matchup("snake", ("a",)), 1.5, None)
    meter.count_episode(Matchup("frozen-lake", ("b",)), 0.0, "down")
    meter.count_tokens("b", 1_000_000, 500_000)
    return meter


def test_the_summary_counts_everything():
    line = summary_line(a_meter())
    assert line.startswith("5/20 episodes · 1 unscored · 1,001,000 + 500,000 tokens · 2.0010 USD · ")
    assert " left" in line


def test_the_live_table_shows_each_agent_and_scenario_and_nothing_stays_but_the_summary():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=140, height=30)
    with LiveTable(a_meter(), console) as display:
        display.update()
        display._live.refresh()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert re.search(r"snake\s+a\s+.*5/10\s+\+1\.500", text)
    assert re.search(r"frozen-lake\s+b\s+.*1/10\s+1", text)
    assert "5/20 episodes" in text.splitlines()[-1]


def test_more_rows_than_the_terminal_has_show_the_unfinished_first():
    totals = {Matchup(f"s{i:02}", ("a",)): 2 for i in range(40)}
    done = {Matchup(f"s{i:02}", ("a",)): 2 for i in range(39)}
    display = LiveTable(Meter(totals, done, {}), Console(file=io.StringIO(), force_terminal=True, width=80, height=10))
    assert [matchup.scenario for matchup, _ in display._shown()] == ["s39"]


def test_the_display_suits_the_place(capsys):
    assert isinstance(choose_display(a_meter(), quiet=True), Silent)
    display = choose_display(a_meter(), quiet=False)
    assert isinstance(display, Lines)
    with display:
        display._next = 0
        display.update()
        display.update()
    assert capsys.readouterr().err.count("5/20 episodes") == 2


def read_until(file, wanted, seconds=20):
    """What a terminal prints, until it has printed ``wanted``."""
    import select

    text, end = "", time.monotonic() + seconds
    while wanted not in text:
        assert time.monotonic() < end, f"no {wanted!r} in {text!r}"
        if select.select([file], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                text += os.read(file, 65536).decode(errors="replace")
    return text


def test_a_replay_is_stepped_through_with_keys(small_run):
    """In a real pseudo-terminal: step on and back, go to the next episode, quit."""
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120", "LINES": "50"}
    command = [sys.executable, "-m", "benchmark.cli", "replay", str(small_run), "--agent", "greedy"]
    command += ["--scenario", "frozen-lake"]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True)
    os.close(slave)
    try:
        read_until(master, "step 1 of")
        for key, wanted in (("n", "step 2 of"), ("p", "step 1 of"), ("\x1b[C", "step 2 of"), ("]", "episode 2 of 3")):
            os.write(master, key.encode())
            read_until(master, wanted)
        os.write(master, b"q")
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_view_serves_the_page_to_this_machine_until_ctrl_c(small_run):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmark.cli", "view", str(small_run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"frozen-lake" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()
