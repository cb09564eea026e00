"""Long runs: kill -9 at any moment loses nothing that was finished, and memory stays bounded."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmark.runs.record import parse_line
from tests.benchmark.helpers import PLAYERS, ROOT, counted, refused

COMMAND = (
    *("run", "--agent", f"slow={PLAYERS}:Slow", "--agent", "greedy", "--max-concurrency", "4", "--episodes", "60"),
    *("--scenario", "frozen-lake", "--scenario", "frozen-lake-slippery", "--quiet", "--json"),
)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def start(*arguments):
    command = [sys.executable, "-m", "benchmark.cli", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def finished_lines(file):
    return [line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def kill_somewhere(process, file, rng):
    """Kill it at a random moment after it has begun to write; says whether it was still running."""
    before = file.stat().st_size if file.exists() else 0
    while process.poll() is None and (file.stat().st_size if file.exists() else 0) <= before:
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.25))
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


def play_with_kills(folder, kills, rng):
    """Run and resume, killed up to ``kills`` times; returns how often it was hit while running."""
    file, hits = folder / "episodes.jsonl", 0
    hits += kill_somewhere(start(*COMMAND, "--out", str(folder)), file, rng)
    for _ in range(kills - 1):
        kept = finished_lines(file)
        hits += kill_somewhere(start("resume", str(folder), "--quiet"), file, rng)
        now = finished_lines(file)
        assert now[: len(kept)] == kept  # nothing that was finished is lost or changed
        assert all(parse_line(line) for line in now)
    assert start("resume", str(folder), "--quiet").wait() == 0
    return hits


@pytest.mark.nightly
def test_twenty_kills_at_random_moments(textbench, workplace):
    assert textbench(*COMMAND, "--out", "whole").code == 0
    rng = random.Random()  # other moments every time: the seed decides nothing about the result
    hits = 0
    for number in range(5):
        folder = workplace / f"killed{number}"
        hits += play_with_kills(folder, 4, rng)
        assert counted(folder) == counted("whole")
    assert hits >= 12, f"only {hits} of 20 kills hit a running process; the run is too short for this machine"


DIE_AT = """
import os, signal, sys
from benchmark.cli import main
from benchmark.runs import folder

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

name, *arguments = sys.argv[1:]
if name == "the draft":
    os.fsync = die  # the first thing that is synced is the draft of the manifest, or of the prompts before it
else:
    folder.RunFolder._open_file = die  # after the manifest, before the file of episodes
main(arguments)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "prompts"), [("the draft", ("--prompts", "own.toml")), ("the draft", ()), ("the episodes", ())]
)
def test_a_kill_before_the_first_episode_leaves_a_folder_that_can_be_used(textbench, workplace, moment, prompts):
    Path("own.toml").write_text('system = "Be quick."\n')
    command = ("run", "--agent", "greedy", "--scenario", "frozen-lake", "--episodes", "3", *prompts)
    killed = (*command, "--out", "killed", "--quiet")
    done = subprocess.run([sys.executable, "-c", DIE_AT, moment, *killed], env=ENVIRONMENT)
    assert done.returncode == -9
    left = {path.name for path in Path("killed").iterdir()}
    assert ".lock" in left
    assert "episodes.jsonl" not in left
    assert ("manifest.json" in left) is (moment == "the episodes")
    if moment == "the draft":
        assert len(left) == 2  # the lock, and a draft
        refused(
            textbench("resume", "killed"),
            "textbench: killed isn't a textbench run: it has no manifest.json; if a run was killed here before its "
            "first episode, start it again: textbench run ... --out killed\n",
        )
        assert textbench(*killed).code == 0
    else:
        assert textbench("resume", "killed", "--quiet").code == 0
    assert textbench(*command, "--out", "whole", "--quiet").code == 0
    assert counted("killed") == counted("whole")
    assert {path.name for path in Path("killed").iterdir()} == {path.name for path in Path("whole").iterdir()}


CODE = """
import resource, sys
from benchmark.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def peak_memory(*arguments) -> int:
    """Peak resident memory of a command in bytes."""
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1]) * 1024


@pytest.mark.nightly
def test_memory_grows_by_little_more_than_the_figures_of_an_episode(workplace):
    peaks, shown = {}, {}
    for episodes in (500, 4_500):
        command = ("--agent", "random", "--scenario", "frozen-lake", "--scenario", "snake", "--episodes", episodes)
        peaks[episodes] = peak_memory("run", *command, "--out", f"r{episodes}", "--quiet")
        shown[episodes] = peak_memory("leaderboard", f"r{episodes}", "--quiet")
    for figures in (peaks, shown):
        each = (figures[4_500] - figures[500]) / (2 * 4_000)
        assert each < 3000, f"{each:.0f} bytes per episode; a record is about 1700 on disk"
