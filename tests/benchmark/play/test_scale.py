"""Large runs in bounded memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

CODE = """
import resource, sys
from benchmark.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def peak_memory(*arguments) -> int:
    """Peak resident memory of a command in bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
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
