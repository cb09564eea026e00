"""The tutorial on serving runs, and prints what stands on its page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs OpenEnv: pip install -e '.[openenv]', or .ci/adapters openenv")

pytestmark = pytest.mark.adapters

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/tutorials/serve.md").read_text()
CELLS = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MARK = "---- end of cell ----"


def test_every_cell_prints_what_stands_below_it(tmp_path):
    assert len(CELLS) == PAGE.count("{code-cell}") >= 5
    program = "\n".join(f"{code}\nprint({MARK!r}, flush=True)" for code, _ in CELLS)
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (code, expected), shown in zip(CELLS, printed, strict=False):
        assert shown == expected, code
