"""Every program of docs/players.md is run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/players.md").read_text(), re.MULTILINE | re.DOTALL)
ASK_TOSS = "from agents import TurnRequest\nprint(TossSearch(None).plan(TurnRequest('Call it.')).action)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "more", "printed"),
    [(0, "", "<action>right</action>!!!\n"), (1, "", "40000 {'player_0': "), (2, ASK_TOSS, "tails\n")],
    ids=["a provider", "a rollout", "a search player"],
)
def test_programs_run_and_print_what_they_should(number, more, printed, tmp_path):
    assert len(PROGRAMS) == 3
    command = [sys.executable, "-W", "error", "-c", PROGRAMS[number] + more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
